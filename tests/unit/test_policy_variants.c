/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each case of tests/policy in other clothes: what is intercepted stays so, and what is harmless
 * does not become a denial. A sample by default; with STET_VARIANTS=all every one of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "policy/judge.h"
#include "policy/policy.h"
#include "policy/tests.h"
#include "policy_rows.h"

enum { SAMPLE = 37 };

/* Of a whole text: %c is the text, %q the text as one quoted word. */
static const char *const around_any[] = {
	"%c",
	"(%c\n)",
	"{ %c\n}",
	"{ %c\n} 2>/dev/null",
	"! { %c\n}",
	"true; %c",
	"true && { %c\n}",
	"false || { %c\n}",
	"true | { %c\n}",
	"cd . && { %c\n}",
	"set -euo pipefail\n%c",
	"# a comment\n%c",
	"\t%c\t",
	"%c\n# a comment",
	"if true; then %c\nfi",
	"if false; then :; elif true; then %c\nfi",
	"if false; then :; else %c\nfi",
	"while true; do %c\nbreak; done",
	"until %c\ndo :; done",
	"for i in 1; do %c\ndone",
	"for ((i=0;i<1;i++)); do %c\ndone",
	"select i in 1; do %c\ndone",
	"case x in y) ;; x) %c\n;; esac",
	"case x in x) ;& y) %c\n;; esac",
	"f() { %c\n}; f",
	"f() { %c\n}; time f",
	"f() { %c\n}; STET_A=1 f x",
	"f() { %c\n}; f >log",
	"function f { %c\n}; true && f",
	"f() (%c\n); x=$(f)",
	"coproc X { %c\n}",
	"eval %q",
	"eval -- %q",
	"command eval %q",
	"builtin eval %q",
	"trap %q EXIT",
	"trap -- %q INT TERM",
	"alias zz=%q; zz",
	"x=%q; eval \"$x\"",
	"x=%q; bash -c \"$x\"",
	"export x=%q; sh -c \"$x\"",
	"set -- %q; eval \"$1\"",
	"f() { eval \"$1\"; }; f %q",
	"f() { local x=$1; bash -c \"$x\"; }; f %q",
	"bash -c %q",
	"bash -lc %q",
	"bash -ce %q",
	"bash -c -- %q",
	"bash -x -o pipefail -c %q x y",
	"bash --norc >log -c %q",
	"bash 2>/dev/null -c %q",
	"sh -ec %q",
	"dash -c %q",
	"env bash -c %q",
	"env - sh -c %q",
	"sudo -n sh -c %q",
	"nice -n 5 timeout 5 sh -c %q",
	"xargs sh -c %q",
	"xargs -n1 sh -c -- %q",
	"busybox sh -c %q",
	"su -c %q",
	"watch %q",
	"script -qc %q",
	"flock /tmp/l -c %q",
	"tmux new -d %q",
	"parallel ::: %q",
	"find . -maxdepth 0 -exec sh -c %q \\;",
	"git -c alias.x='!'%q x",
	"git bisect run sh -c %q",
	"git submodule foreach %q",
	"PAGER=%q man ls",
	"GIT_SSH_COMMAND=%q git fetch",
	"tar -I %q -cf x .",
	"rsync -e %q a h:b",
	"echo %q | sh",
	"printf '%%s\n' %q | bash -s",
	"bash <<< %q",
	"bash -s <<<%q >log",
	"bash <<'STET_E'\n%c\nSTET_E",
	"cat <<'STET_E' | sh\n%c\nSTET_E",
	"echo $(%c\n)",
	"echo \"a $(%c\n) b\"",
	"x=$(%c\n)",
	"cat <(%c\n)",
	"[[ -n $(%c\n) ]]",
	"echo ${x:-$(%c\n)}",
	"echo $((1 + $(%c\n)))",
	"cat <<STET_E\n$(%c\n)\nSTET_E",
};

/* Of one command. */
static const char *const around_one[] = {
	"\\%c",
	"! %c",
	"STET_A=1 STET_B='2 3' %c",
	"command %c",
	"command -p %c",
	"command -- %c",
	"exec %c",
	"exec -a x %c",
	"coproc %c",
	"time %c",
	"time -p %c",
	"/usr/bin/time -v %c",
	"env %c",
	"env - %c",
	"env -i STET_A=1 %c",
	"env -u X -C . %c",
	"/usr/bin/env %c",
	"env -S%q",
	"nohup %c &",
	"nice %c",
	"nice -n 5 %c",
	"nice -5 %c",
	"timeout 5 %c",
	"timeout -k 1 -s KILL 5 %c",
	"setsid -w %c",
	"stdbuf -oL -e0 %c",
	"ionice -c3 %c",
	"chrt -b 0 %c",
	"taskset 1 %c",
	"setarch -R %c",
	"strace -f %c",
	"unshare -r %c",
	"flock /tmp/l %c",
	"systemd-run --user %c",
	"sudo %c",
	"sudo -n -u root %c",
	"sudo STET_A=1 %c",
	"sudo -- %c",
	"doas %c",
	"xargs %c </dev/null",
	"find . -maxdepth 0 -exec %c \\;",
	"env nice -n 1 timeout 5 %c",
	"nohup env - setsid %c",
	">log %c",
	"2>/dev/null %c",
	"%c 2>&1",
	"%c >log 2>&1 </dev/null",
	"%c &",
	"%c | cat",
	"ls | %c",
	"%c && true",
	"%c || true",
};

/* Between two words of a command of plain words. */
static const char *const between[] = {
	"\t",		" \\\n ",	"\\\n ",   " >log ", " 2>/dev/null ", " 2>&1 ",
	" >>log 2>&1 ", " </dev/null ", " &>log ", " <<<x ", " {fd}>log ",
};

/* One word: %w is it, %a and %z its first letter and the others, %x its letters as \xNN. */
static const char *const for_word[] = {
	"'%w'",	 "\"%w\"",	"%a\"\"%z",    "''%w",	   "'%a'%z", "\"%a\"'%z'", "\\%w",
	"$'%x'", "$'%a'\"%z\"", "\"%a\"$'%z'", "%a\\\n%z", "{%w,}",  "{,%w}",
};

/* The program, by what is set before. */
static const char *const for_program[] = {
	"STET_A=%w; $STET_A",
	"STET_A=%w; \"$STET_A\"",
	"STET_A=%w; ${STET_A}",
	"STET_A=%a; STET_A+=%z; $STET_A",
	"STET_A=ls; STET_A=%w; $STET_A",
	"STET_A=%w STET_B=ls; $STET_A",
	"declare STET_A=%w; $STET_A",
	"export STET_A=%w; $STET_A",
	"readonly STET_A=%w; $STET_A",
	"STET_A=%w; STET_B=$STET_A; $STET_B",
	"STET_A=%a STET_B=%z; $STET_A$STET_B",
	"set -- %w; $1",
	"set -- %w; \"$@\"",
	"$(echo %w)",
	"`printf %w`",
	"/bin/%w",
	"/usr/bin/%w",
	"x=x; f() { \"$@\"; }; f %w",
};

struct row {
	const char *where, *text;
	int line;
	bool risky;
};

struct tally {
	size_t rows, judged, wrong, seen, step;
};

static void judge(struct tally *t, const struct row *r, const char *variant)
{
	struct verdict v;
	struct err e;
	bool bad;

	t->judged++;
	assert_int_equal(policy_judge_text(policy_builtin(), variant, strlen(variant),
					   &policy_test_facts, &v, &e),
			 0);
	bad = r->risky ? v.kind == VERDICT_ALLOW : v.kind >= VERDICT_DENY;
	if (!bad)
		return;
	t->wrong++;
	print_error("%s:%d: %s by %s: %s\n", r->where, r->line, verdict_name(v.kind),
		    v.rule ? v.rule : "nothing", variant);
}

/* Is it the turn of the next one? */
static bool due(struct tally *t)
{
	return t->seen++ % t->step == 0;
}

static void add_quoted(struct buf *b, const char *text)
{
	buf_addc(b, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_adds(b, "'\\''");
		else
			buf_addc(b, *text);
	}
	buf_addc(b, '\'');
}

static void add_form(struct buf *b, const char *form, const char *text, size_t len)
{
	for (; *form; form++) {
		if (*form != '%') {
			buf_addc(b, *form);
			continue;
		}
		switch (*++form) {
		case 'c':
		case 'w':
			buf_add(b, text, len);
			break;
		case 'q':
			add_quoted(b, text);
			break;
		case 'a':
			buf_add(b, text, 1);
			break;
		case 'z':
			buf_add(b, text + 1, len - 1);
			break;
		case 'x':
			for (size_t i = 0; i < len; i++)
				buf_addf(b, "\\x%02x", (unsigned char)text[i]);
			break;
		default:
			buf_addc(b, *form);
		}
	}
}

static void wrap(struct tally *t, const struct row *r, const char *form)
{
	struct buf b = BUF_INIT;
	AUTO_FREE char *text = NULL;

	if (!due(t))
		return;
	add_form(&b, form, r->text, strlen(r->text));
	text = buf_take(&b);
	judge(t, r, text);
}

/* The words of @text with @gap behind word @at, or with that word in @form. */
static void change_word(struct tally *t, const struct row *r, size_t at, const char *gap,
			const char *form)
{
	struct buf b = BUF_INIT;
	AUTO_FREE char *text = NULL;
	const char *p = r->text;
	size_t i;

	if (!due(t))
		return;
	for (i = 0; *p; i++) {
		size_t n = strcspn(p, " ");

		if (form && i == at)
			add_form(&b, form, p, n);
		else
			buf_add(&b, p, n);
		p += n;
		if (gap && i == at)
			buf_adds(&b, *p ? gap : " >log");
		else if (*p)
			buf_addc(&b, ' ');
		p += strspn(p, " ");
	}
	text = buf_take(&b);
	judge(t, r, text);
}

/* A program with arguments, not a word of the shell's own. */
static bool is_program(const char *text)
{
	static const char *const own[] = {
		".",	   "[",		"[[",	    "alias",   "bind",	   "builtin",
		"case",	   "cd",	"command",  "compgen", "complete", "coproc",
		"declare", "enable",	"eval",	    "exec",    "export",   "fc",
		"for",	   "function",	"getopts",  "hash",    "if",	   "jobs",
		"let",	   "local",	"mapfile",  "popd",    "printf",   "pushd",
		"read",	   "readarray", "readonly", "select",  "set",	   "shift",
		"source",  "test",	"time",	    "trap",    "typeset",  "umask",
		"unalias", "unset",	"until",    "wait",    "while",	   "!",
		"then",
	};
	size_t n = strcspn(text, " \t"), i;

	if (memchr(text, '=', n) || strchr("<>{(!'\"\\$~-", *text))
		return false;
	for (i = 0; i < ARRAY_SIZE(own); i++)
		if (strlen(own[i]) == n && memcmp(own[i], text, n) == 0)
			return false;
	return true;
}

static bool parameters(const char *text)
{
	const char *p = text;

	while ((p = strchr(p, '$')) != NULL) {
		p += 1 + (p[1] == '{');
		if (*p && strchr("123456789@*#", *p))
			return true;
	}
	return false;
}

static void vary(struct tally *t, const struct row *r)
{
	bool one = is_program(r->text) && !strpbrk(r->text, "|&;<>(){}`#\n\t");
	bool plain = one && !strpbrk(r->text, "'\"\\$*?[]~=^,") && !strstr(r->text, "  ");
	size_t words = 1, i, k;
	const char *p;

	for (i = 0; i < ARRAY_SIZE(around_any); i++)
		/* Parameters that were not known are, in a function or another shell. */
		if (!parameters(r->text))
			wrap(t, r, around_any[i]);
	for (i = 0; one && i < ARRAY_SIZE(around_one); i++)
		wrap(t, r, around_one[i]);
	if (!plain)
		return;
	for (p = r->text; *p; p++)
		words += *p == ' ';
	for (k = 0; k < words; k++) {
		for (i = 0; i < ARRAY_SIZE(between); i++)
			change_word(t, r, k, between[i], NULL);
		for (i = 0; i < ARRAY_SIZE(for_word); i++)
			change_word(t, r, k, NULL, for_word[i]);
	}
	for (i = 0; i < ARRAY_SIZE(for_program); i++)
		change_word(t, r, 0, NULL, for_program[i]);
}

static void vary_row(void *arg, const struct policy_row *p)
{
	struct row r = { p->file, p->text, p->line, strcmp(p->want, "allow") != 0 };
	struct tally *t = arg;

	/* A deferred row may be so for a reason that another form of the row has not. */
	if (strcmp(p->want, "defer") == 0 && strcmp(p->label, "risky") != 0)
		return;
	t->rows++;
	vary(t, &r);
}

static void test_variants(void **state)
{
	const char *all = getenv("STET_VARIANTS");
	struct tally t = { .step = all && strcmp(all, "all") == 0 ? 1 : SAMPLE };

	(void)state;
	policy_rows(vary_row, &t);
	print_message("%zu rows, %zu of %zu variants, %zu wrong\n", t.rows, t.judged,
		      t.seen, t.wrong);
	assert_true(t.rows >= 2000);
	assert_int_equal(t.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_variants) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
