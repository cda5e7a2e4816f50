/* SPDX-License-Identifier: Apache-2.0 */
/* Layers, bad documents, programs by their arguments, changes. Texts: test_policy_corpus. */
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
#include "policy/check.h"
#include "policy/judge.h"
#include "policy/load.h"
#include "policy/policy.h"
#include "policy/tests.h"

#define RULE "version: 1\nrules:\n  - id: x\n    verdict: deny\n    why: w\n"

static int load(enum conf_origin origin, const char *text, struct policy **p,
		struct err *e)
{
	struct conf_source s = { origin, "x.yaml", text, strlen(text) };

	memset(e, 0, sizeof(*e));
	return policy_load(&s, 1, p, e);
}

static const struct {
	const char *text, *message; /* NULL: it is a good one */
	enum conf_origin origin;
} documents[] = {
	{ "version: 1\n", NULL, CONF_USER },
	{ RULE "    program: [foo]\n", NULL, CONF_USER },
	{ "", "x.yaml:1: empty", CONF_USER },
	{ "version: 2\n", "x.yaml:1: this version", CONF_USER },
	{ "rules: []\n", "Missing required mapping field: version", CONF_USER },
	{ "version: 1\nrulez: []\n", "x.yaml:2: Unexpected key: rulez", CONF_USER },
	{ RULE "    program: [foo]\n    porgram: [x]\n",
	  "x.yaml:7: Unexpected key: porgram", CONF_USER },
	{ "version: 1\nversion: 1\n", "x.yaml:2: Mapping field already seen", CONF_USER },
	{ "version: [1]\n", "x.yaml:1: ", CONF_USER },
	{ "version: 1\nrules: yes\n", "x.yaml:2: a list is expected", CONF_USER },
	{ "version: 1\ndefault: never\n", "x.yaml:2: Invalid ENUM value: never",
	  CONF_USER },
	{ RULE "    program: foo\n", "x.yaml:6: a list is expected", CONF_USER },
	{ RULE, "x.yaml:3: no program", CONF_USER },
	{ "version: 1\nrules: [\n", "x.yaml:3: ", CONF_USER },
	{ "version: 1\n---\nversion: 1\n", "x.yaml:2: a second document", CONF_USER },
	{ "version: 1\nenvironment: &a [*a]\n", "x.yaml:2: aliases", CONF_USER },
	{ "version: 1\noff: &a [x]\nenvironment: *a\n", "x.yaml:3: aliases", CONF_USER },
	{ "version: 1\noff: [\"a\\0b\"]\n", "x.yaml:2: a NUL", CONF_USER },
	{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "x.yaml:1: nested too deep", CONF_USER },
	{ "version: 1\noff: [\xff]\n", "x.yaml:", CONF_USER },
	{ "version: 1\noff: [no.such]\n", "x.yaml:2: no such rule: no.such", CONF_USER },
	{ "version: 1\nlimits: {memory: lots}\n", "x.yaml:2: not a size", CONF_USER },
	{ "version: 1\nlimits: {wall: -5}\n", "x.yaml:2: not a time", CONF_USER },
	{ "version: 1\nlimits: {pids: -5}\n", "x.yaml:2: pids", CONF_USER },
	{ "version: 1\nlimits: {files: -5}\n", "x.yaml:2: files", CONF_USER },
	{ RULE "    program: [foo]\n    paths: {within: [src]}\n",
	  "x.yaml:3: a path begins with", CONF_USER },
	{ RULE "    program: [foo]\n    paths: {within: ['@nothing']}\n",
	  "x.yaml:3: no such class", CONF_USER },
	{ RULE "    program: [foo]\n    paths: {within: [/a/../b]}\n",
	  "x.yaml:3: a path with", CONF_USER },
	{ RULE "    program: [foo]\n    paths: {}\n", "x.yaml:3: paths without",
	  CONF_USER },
	{ RULE "    program: [foo]\n    options: [force]\n", "x.yaml:3: not an option",
	  CONF_USER },
	{ RULE "    program: [foo]\n    options: ['-f|']\n", "x.yaml:3: not an option",
	  CONF_USER },
	{ RULE "    program: [foo]\n    writes: {is: [/x]}\n",
	  "x.yaml:3: writes stands alone", CONF_USER },
	{ "version: 1\nrules:\n  - {id: rm.outside, verdict: deny, why: w, program: [a]}\n",
	  "x.yaml:3: this id is taken", CONF_USER },
	{ "version: 1\nrules:\n  - {id: 'A b', verdict: deny, why: w, program: [a]}\n",
	  "x.yaml:3: an id has", CONF_USER },
	/* Tests and hints. */
	{ RULE "    program: [foo]\n    tests: {deny: [foo -x], allow: [bar]}\n", NULL,
	  CONF_USER },
	/* What is deferred for no rule's sake is met by both words. */
	{ RULE "    program: [foo]\n    tests: {allow: [make], defer: [make]}\n", NULL,
	  CONF_USER },
	{ RULE "    program: [foo]\n    options: [-x]\n    tests: {allow: [foo $y]}\n",
	  "x.yaml:3: rule x: its test 'foo $y' is defer by x", CONF_USER },
	{ RULE "    program: [foo]\n    tests: {allow: [foo -x]}\n",
	  "x.yaml:3: rule x: its test 'foo -x' is deny by x", CONF_USER },
	{ RULE "    program: [foo]\n    tests: {deny: [foo], allow: [foo]}\n",
	  "x.yaml:3: rule x: its test 'foo' is deny by x", CONF_USER },
	{ RULE "    program: [foo]\n    hint: foo --safe\n",
	  "x.yaml:3: rule x: its own hint 'foo --safe' is deny by x", CONF_USER },
	{ RULE "    program: [foo]\n    hint: rm -rf /\n",
	  "x.yaml:3: rule x: its own hint 'rm -rf /' is deny by rm.outside", CONF_USER },
	{ RULE "    program: [foo]\n    hint: rm old.txt\n", NULL, CONF_USER },
	/* What a project may not do. */
	{ "version: 1\noff: [rm.outside]\n", NULL, CONF_USER },
	{ "version: 1\noff: [rm.outside]\n", "x.yaml:2: a project may only tighten",
	  CONF_PROJECT },
	{ "version: 1\nvariables: [{names: [X], what: text}]\n", NULL, CONF_USER },
	{ "version: 1\nvariables: [{names: [X], what: often}]\n",
	  "x.yaml:2: Invalid ENUM value: often", CONF_USER },
	{ "version: 1\nvariables: [{names: [X]}]\n",
	  "x.yaml:2: a project may only tighten", CONF_PROJECT },
	{ "version: 1\ntools: [{names: [rm]}]\n", "x.yaml:2: a project may only tighten",
	  CONF_PROJECT },
	{ "version: 1\nclasses: [{name: system, paths: [/x]}]\n",
	  "x.yaml:2: a project may not redefine", CONF_PROJECT },
	{ "version: 1\nrules:\n  - {id: a, verdict: allow, why: w, program: [rm]}\n",
	  "x.yaml:3: a project may not allow", CONF_PROJECT },
	{ "version: 1\ndefault: ask\n", NULL, CONF_PROJECT },
};

static void test_documents(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(documents); i++) {
		struct policy *p = NULL;
		struct err e;
		int r = load(documents[i].origin, documents[i].text, &p, &e);

		if ((r < 0) != (documents[i].message != NULL) ||
		    (r < 0 && !strstr(e.msg, documents[i].message)))
			fail_msg("%s\ngave: %s", documents[i].text, r < 0 ? e.msg : "ok");
		if (r < 0) {
			assert_null(p);
			assert_int_equal(e.kind, ERR_USAGE);
		}
		policy_free(p);
	}
}

static void test_too_large(void **state)
{
	size_t len = (8 << 20) + 1;
	AUTO_FREE char *text = xmalloc(len);
	struct conf_source s = { CONF_USER, "big.yaml", text, len };
	struct policy *p = NULL;
	struct err e;

	(void)state;
	memset(text, ' ', len);
	assert_int_equal(policy_load(&s, 1, &p, &e), -1);
	assert_non_null(strstr(e.msg, "big.yaml:1: larger than 8 MiB"));
	assert_null(p);
}

/* Nine lists of nine aliases each: a few hundred bytes that would be billions. */
static void test_bomb(void **state)
{
	AUTO_BUF struct buf b = BUF_INIT;
	struct policy *p = NULL;
	struct err e;
	int i, k;

	(void)state;
	buf_adds(&b, "version: 1\na0: &a0 [lol]\n");
	for (i = 1; i < 10; i++) {
		buf_addf(&b, "a%d: &a%d [", i, i);
		for (k = 0; k < 9; k++)
			buf_addf(&b, "*a%d, ", i - 1);
		buf_adds(&b, "]\n");
	}
	assert_int_equal(load(CONF_USER, buf_str(&b), &p, &e), -1);
	assert_non_null(strstr(e.msg, "x.yaml:3: aliases are not allowed"));
}

static void report(void *arg, const struct policy_test *t)
{
	size_t *n = arg;

	++*n;
	if (!t->passed)
		print_error("%s: %s'%s' is %s by %s\n", t->rule,
			    t->is_hint ? "hint " : "", t->text, verdict_name(t->got.kind),
			    t->got.rule ? t->got.rule : "nothing");
}

static void test_builtin(void **state)
{
	const struct policy *p = policy_builtin();
	struct conf_lines none = { 0 };
	struct err e;
	size_t n = 0, i;

	(void)state;
	for (i = 0; i < p->docs_count; i++)
		if (check_layer(p, i, "built-in", &none, &e) < 0)
			fail_msg("%s", e.msg);
	assert_int_equal(policy_run_tests(p, CONF_BUILTIN, report, &n), 0);
	assert_true(n > 400);
	assert_int_equal(strlen(policy_hash(p)), 64);
}

/* Is one of the words that @spec lists in the text, as a word or at the beginning of one? */
static bool names_one(const char *text, const char *spec)
{
	while (*spec) {
		size_t n = strcspn(spec, "|=");

		for (const char *at = text; n && (at = strchr(at, ' ')); at++)
			if (strncmp(at + 1, spec, n) == 0 ||
			    (at[1] == '-' && spec[0] == '-' && n == 2 && at[2] != '-' &&
			     memchr(at + 2, spec[1], strcspn(at + 2, " "))))
				return true;
		spec += strcspn(spec, "|");
		spec += *spec == '|';
	}
	return false;
}

static bool counters(const struct doc_match *m, const char *const *texts, uint32_t n)
{
	for (uint32_t t = 0; t < n; t++) {
		for (uint32_t i = 0; i < m->options_count; i++)
			if (names_one(texts[t], m->options[i]))
				return true;
		for (uint32_t i = 0; i < m->operands_count; i++)
			if (names_one(texts[t], m->operands[i]))
				return true;
	}
	return false;
}

/*
 * Each exception of a rule has a test in which its word is there and disarms nothing: as the value
 * of another option, behind "--", taken back, or beside what it does not hold for.
 */
static void test_exceptions(void **state)
{
	const struct policy *p = policy_builtin();

	(void)state;
	for (size_t d = 0; d < p->docs_count; d++)
		for (uint32_t i = 0; i < p->docs[d]->rules_count; i++) {
			const struct doc_rule *r = &p->docs[d]->rules[i];
			const struct doc_tests *t = r->tests;

			if (!r->unless)
				continue;
			if (!t ||
			    !(counters(r->unless, t->checkpoint, t->checkpoint_count) ||
			      counters(r->unless, t->ask, t->ask_count) ||
			      counters(r->unless, t->deny, t->deny_count)))
				fail_msg("%s: no test of what its exception is not",
					 r->id);
		}
}

/* clang-format off */
static const struct {
	enum verdict_kind want;
	const char *rule;
	const char *exe, *known_as;
	unsigned flags;
	const char *argv[10];
} execs[] = {
	{ VERDICT_ALLOW,      NULL,            "/usr/bin/ls", NULL, 0, { "ls", "-la" } },
	{ VERDICT_DENY,       "rm.outside",    "/usr/bin/rm", NULL, 0, { "rm", "-rf", "/etc" } },
	{ VERDICT_CHECKPOINT, "rm.any",        "/usr/bin/rm", NULL, 0, { "rm", "-rf", "build" } },
	/* The name it is called by says nothing, or more. */
	{ VERDICT_DENY,       "rm.outside",    "/usr/bin/rm", NULL, 0, { "ls", "-rf", "/etc" } },
	{ VERDICT_DENY,       "rm.outside",    "/bin/busybox", NULL, 0, { "rm", "-rf", "/etc" } },
	{ VERDICT_DENY,       "rm.outside",    "/bin/busybox", NULL, 0, { "busybox", "rm", "-rf", "/etc" } },
	{ VERDICT_DENY,       "rm.outside",    "/w/x", "rm", EXE_BUILT_HERE, { "x", "-rf", "/etc" } },
	{ VERDICT_DENY,       "rm.outside",    NULL, NULL, EXE_UNKNOWN, { "rm", "-rf", "/etc" } },
	/* Wrappers, and texts of shells. */
	{ VERDICT_DENY,       "rm.outside",    "/usr/bin/env", NULL, 0, { "env", "-i", "A=b", "rm", "-r", "/etc" } },
	{ VERDICT_DENY,       "rm.outside",    "/usr/bin/dash", NULL, 0, { "sh", "-c", "cd /; rm -rf *" } },
	{ VERDICT_DENY,       "rm.outside",    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", NULL, EXE_LOADER,
	  { "ld.so", "/usr/bin/rm", "-rf", "/etc" } },
	{ VERDICT_DENY,       "disk.redirect", "/usr/bin/bash", NULL, 0, { "bash", "-c", "cat x > /dev/sda" } },
	{ VERDICT_ASK,        "publish.npm",   "/usr/bin/node", NULL, 0, { "node", "/usr/bin/npm", "publish" } },
	/* What is not known does not count here. */
	{ VERDICT_ALLOW,      NULL,            "/usr/bin/dash", NULL, 0, { "sh", "-c", "$X -rf /" } },
	{ VERDICT_ALLOW,      NULL,            "/usr/bin/xargs", NULL, 0, { "xargs", "rm", "-rf" } },
	{ VERDICT_ALLOW,      NULL,            "/usr/bin/python3.11", NULL, 0, { "python3", "-c", "x" } },
	/* Data. */
	{ VERDICT_ALLOW,      NULL,            "/usr/bin/git", NULL, 0,
	  { "git", "commit", "-m", "rm -rf / && git push --force" } },
	{ VERDICT_ALLOW,      NULL,            "/usr/bin/grep", NULL, 0, { "grep", "rm -rf /", "x" } },
	/* The image itself. */
	{ VERDICT_ASK,        "run.memory",    "/memfd:x (deleted)", NULL, EXE_MEMFD, { "x" } },
	{ VERDICT_ASK,        "run.memory",    "/w/gone (deleted)", NULL, EXE_DELETED, { "gone" } },
	{ VERDICT_DENY,       "run.foreign",   "/w/old", NULL, EXE_FOREIGN, { "old" } },
	/* Literal patterns: no shell stands between. */
	{ VERDICT_CHECKPOINT, "rm.any",        "/usr/bin/rm", NULL, 0, { "rm", "-rf", "*" } },
	{ VERDICT_ALLOW,      NULL,            "/usr/bin/true", NULL, 0, { NULL } },
};
/* clang-format on */

static void test_execs(void **state)
{
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(execs); i++) {
		struct exec_facts f = {
			.exe = execs[i].exe,
			.known_as = execs[i].known_as,
			.flags = execs[i].flags,
			.argv = execs[i].argv,
			.cwd = "/home/me/project",
			.workspace = "/home/me/project",
			.home = "/home/me",
		};
		struct verdict v;

		for (n = 0; n < ARRAY_SIZE(execs[i].argv) && execs[i].argv[n]; n++)
			;
		f.argc = n;
		policy_judge_exec(policy_builtin(), &f, &v);
		if (v.kind != execs[i].want ||
		    (execs[i].rule && (!v.rule || strcmp(v.rule, execs[i].rule) != 0)))
			fail_msg("case %zu (%s): %s by %s", i, f.argc ? f.argv[0] : "-",
				 verdict_name(v.kind), v.rule ? v.rule : "nothing");
	}
}

static const char *find_cwd(void *ctx)
{
	++*(unsigned *)ctx;
	return "/home/me/project";
}

/* The directory is asked for if it matters, and makes the same of it. */
static void test_directory_later(void **state)
{
	static const struct {
		bool asked;
		const char *argv[4];
	} cases[] = {
		{ false, { "true" } },
		{ false, { "ls", "-l", "../x" } },
		{ false, { "rm", "-rf", "/etc" } },
		{ true, { "rm", "-rf", "build" } },
		{ true, { "rm", "-rf", "../../.." } },
		{ true, { "rm", "-rf", "/proc/self/cwd/x" } },
		{ false, { "sh", "-c", "cd /; rm -rf etc" } },
		{ true, { "sh", "-c", "cd ..; rm -rf x" } },
		{ true, { "sh", "-c", "rm -rf \"$PWD\"" } },
		{ true, { "sh", "-c", "cat x > ../y" } },
	};
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned asked = 0;
		struct exec_facts f = { .argv = cases[i].argv,
					.cwd = "/home/me/project",
					.workspace = "/home/me/project",
					.home = "/home/me" };
		struct verdict now, later;

		for (n = 0; n < ARRAY_SIZE(cases[i].argv) && cases[i].argv[n]; n++)
			;
		f.argc = n;
		policy_judge_exec(policy_builtin(), &f, &now);
		f.cwd = NULL;
		f.find_cwd = find_cwd;
		f.ctx = &asked;
		policy_judge_exec(policy_builtin(), &f, &later);
		if (now.kind != later.kind || now.rule != later.rule ||
		    cases[i].asked != (asked > 0))
			fail_msg("case %zu: %s, then %s, asked %u times", i,
				 verdict_name(now.kind), verdict_name(later.kind), asked);
	}
}

/* Asked before it is executed, what is not known is deferred; that is no softer a no. */
static void test_ahead(void **state)
{
	static const struct {
		enum verdict_kind want;
		const char *argv[5];
	} cases[] = {
		{ VERDICT_ALLOW, { "ls", "-l" } },
		{ VERDICT_ALLOW, { "sh", "-c", "ls" } },
		{ VERDICT_DEFER, { "bash", "x.sh" } },
		{ VERDICT_DEFER, { "sh", "-c", "$X -rf /" } },
		{ VERDICT_DEFER, { "env", "./x" } },
		{ VERDICT_DEFER, { "xargs", "rm", "-rf" } },
		{ VERDICT_DEFER, { "make", "test" } },
		{ VERDICT_CHECKPOINT, { "rm", "-rf", "build" } },
		{ VERDICT_DENY, { "bash", "-c", "./x; rm -rf /" } },
	};
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct exec_facts f = { .argv = cases[i].argv,
					.cwd = "/home/me/project",
					.workspace = "/home/me/project",
					.home = "/home/me",
					.ahead = true };
		struct verdict v;

		for (n = 0; n < ARRAY_SIZE(cases[i].argv) && cases[i].argv[n]; n++)
			;
		f.argc = n;
		policy_judge_exec(policy_builtin(), &f, &v);
		if (v.kind != cases[i].want)
			fail_msg("case %zu: %s", i, verdict_name(v.kind));
		f.ahead = false;
		policy_judge_exec(policy_builtin(), &f, &v);
		assert_int_not_equal(v.kind, VERDICT_DEFER);
	}
}

static enum verdict_kind judge(const struct policy *p, const char *text,
			       struct verdict *v)
{
	struct err e;

	assert_int_equal(
		policy_judge_text(p, text, strlen(text), &policy_test_facts, v, &e), 0);
	return v->kind;
}

static void test_place(void **state)
{
	static const char text[] = "ls -l && rm -rf /etc; echo done";
	struct verdict v;

	(void)state;
	assert_int_equal(judge(policy_builtin(), text, &v), VERDICT_DENY);
	assert_int_equal(v.from, 9);
	assert_int_equal(v.to, 20);
	/* Inside of another text it is the place of the outer command. */
	assert_int_equal(judge(policy_builtin(), "ls; sh -c 'rm -rf /etc'", &v),
			 VERDICT_DENY);
	assert_int_equal(v.from, 4);
	assert_int_equal(v.to, 23);
}

static void test_facts(void **state)
{
	struct text_facts nowhere = { NULL, NULL, NULL };
	struct verdict v;
	struct err e;

	(void)state;
	/* Without a workspace, everything but /tmp is outside. */
	assert_int_equal(
		policy_judge_text(policy_builtin(), "rm -rf /x/y", 11, &nowhere, &v, &e),
		0);
	assert_int_equal(v.kind, VERDICT_DENY);
	assert_int_equal(
		policy_judge_text(policy_builtin(), "rm -rf y", 8, &nowhere, &v, &e), 0);
	assert_int_equal(v.kind, VERDICT_CHECKPOINT);
	assert_int_equal(policy_judge_text(policy_builtin(), "", 0, &nowhere, &v, &e), 0);
	assert_int_equal(v.kind, VERDICT_ALLOW);
}

static void test_text_limits(void **state)
{
	AUTO_FREE char *text = xmalloc(POLICY_TEXT_MAX + 1);
	struct verdict v;
	struct err e;
	size_t i;

	(void)state;
	memset(text, 'a', POLICY_TEXT_MAX + 1);
	assert_int_equal(policy_judge_text(policy_builtin(), text, POLICY_TEXT_MAX + 1,
					   &policy_test_facts, &v, &e),
			 -1);
	assert_int_equal(e.kind, ERR_USAGE);
	/* Nested far too deep: deferred, not a crash. */
	for (i = 0; i < 60000; i++)
		text[i] = '(';
	assert_int_equal(policy_judge_text(policy_builtin(), text, 60000,
					   &policy_test_facts, &v, &e),
			 0);
	assert_int_equal(v.kind, VERDICT_DEFER);
	/* A NUL: the shell would not see what follows, or all of it. */
	assert_int_equal(policy_judge_text(policy_builtin(), "ls\0rm -rf /", 11,
					   &policy_test_facts, &v, &e),
			 0);
	assert_int_equal(v.kind, VERDICT_DEFER);
	/* Functions that call each other for ever. */
	assert_int_equal(judge(policy_builtin(), "f() { g; g; }; g() { f; f; }; f", &v),
			 VERDICT_DEFER);
}

static void test_layers(void **state)
{
	static const char user[] =
		"version: 1\n"
		"off: [git.push.force]\n"
		"environment: [PATH, 'LC_*', HOME]\n"
		"limits: {memory: 1G, wall: 10m, pids: 100}\n"
		"rules:\n"
		"  - {id: my.rule, verdict: kill, why: w, program: [zap]}\n";
	static const char project[] = "version: 1\n"
				      "default: ask\n"
				      "environment: [PATH, HOME, X]\n"
				      "limits: {memory: 2G, wall: 5m}\n";
	struct conf_source s[] = {
		{ CONF_USER, "u.yaml", user, sizeof(user) - 1 },
		{ CONF_PROJECT, "p.yaml", project, sizeof(project) - 1 },
	};
	struct policy *one, *both;
	struct verdict v;
	struct err e;

	(void)state;
	assert_int_equal(policy_load(s, 1, &one, &e), 0);
	assert_int_equal(policy_load(s, 2, &both, &e), 0);
	assert_int_equal(judge(one, "git push -f", &v), VERDICT_ALLOW);
	assert_int_equal(judge(policy_builtin(), "git push -f", &v), VERDICT_ASK);
	assert_int_equal(judge(one, "zap", &v), VERDICT_KILL);
	assert_string_equal(v.rule, "my.rule");
	assert_int_equal(judge(one, "ls", &v), VERDICT_ALLOW);
	assert_int_equal(judge(both, "ls", &v), VERDICT_ASK);
	assert_string_equal(v.rule, "default");
	assert_int_equal(policy_limits(both)->memory, 1 << 30);
	assert_int_equal(policy_limits(both)->wall_ms, 5 * 60 * 1000);
	assert_int_equal(policy_limits(both)->pids, 100);
	assert_int_equal(policy_limits(both)->disk, 0);
	assert_true(policy_env_allows(one, "LC_ALL"));
	assert_false(policy_env_allows(both, "LC_ALL"));
	assert_false(policy_env_allows(both, "X"));
	assert_true(policy_env_allows(both, "PATH"));
	assert_true(policy_env_allows(policy_builtin(), "ANYTHING"));
	assert_string_not_equal(policy_hash(one), policy_hash(both));
	assert_string_not_equal(policy_hash(one), policy_hash(policy_builtin()));
	policy_free(one);
	policy_free(both);
}

static void test_rules(void **state)
{
	struct policy_rule r;
	AUTO_FREE char *text = NULL;
	size_t i, commands = 0, changes = 0;

	(void)state;
	for (i = 0; policy_rule_at(policy_builtin(), i, &r); i++) {
		assert_non_null(r.id);
		assert_non_null(r.why);
		assert_false(r.off);
		commands += !r.diff;
		changes += r.diff;
	}
	assert_true(commands > 80 && changes > 5);
	text = policy_rule_text(policy_builtin(), "rm.outside");
	assert_non_null(strstr(text, "verdict: deny"));
	assert_null(policy_rule_text(policy_builtin(), "no.such"));
}

static void test_changes(void **state)
{
	static const struct {
		enum verdict_kind want;
		const char *path;
		unsigned what;
		bool unseen;
	} cases[] = {
		{ VERDICT_ALLOW, "/home/me/project/src/a.c", CHANGED_WRITTEN },
		{ VERDICT_ALLOW, "/home/me/notes", CHANGED_DELETED },
		{ VERDICT_ASK, "/home/me/notes", CHANGED_DELETED, true },
		{ VERDICT_ASK, "/home/me/notes", CHANGED_REPLACED, true },
		{ VERDICT_ASK, "/home/me/notes", CHANGED_RIGHTS, true },
		{ VERDICT_ALLOW, "/home/me/notes", CHANGED_WRITTEN, true },
		{ VERDICT_ALLOW, "/home/me/project/a", CHANGED_DELETED, true },
		{ VERDICT_ALLOW, "/home/me/.cache/x/y", CHANGED_DELETED, true },
		{ VERDICT_ASK, "/home/me/.local/share/Trash/files/x", CHANGED_DELETED,
		  true },
		{ VERDICT_ALLOW, "/home/me/.local/share/Trash/files/x", CHANGED_WRITTEN,
		  true },
		{ VERDICT_ALLOW, "/home/me/.local/share/Trash/directorysizes",
		  CHANGED_REPLACED, true },
		{ VERDICT_ALLOW, "/var/tmp/y", CHANGED_REPLACED, true },
		{ VERDICT_ASK, "/home/me/.bash_history", CHANGED_DELETED, true },
		{ VERDICT_ALLOW, "/home/me/.bash_history", CHANGED_REPLACED, true },
		{ VERDICT_ALLOW, "/home/me/.git/objects/ab/c", CHANGED_DELETED, true },
		{ VERDICT_ALLOW, "/home/me/.git/index", CHANGED_REPLACED, true },
		{ VERDICT_ASK, "/home/me/.git/objects", CHANGED_DELETED, true },
		{ VERDICT_ASK, "/home/me/.git/config", CHANGED_REPLACED, true },
		{ VERDICT_ASK, "/home/me/project/tool", CHANGED_SETUID },
		{ VERDICT_ASK, "/home/me/project/.git/hooks/pre-commit",
		  CHANGED_WRITTEN },
		{ VERDICT_ALLOW, "/home/me/project/.git/hooks/x", CHANGED_DELETED },
		{ VERDICT_ASK, "/home/me/project/.github/workflows/ci.yml",
		  CHANGED_WRITTEN },
		{ VERDICT_ASK, "/home/me/project/.stet.yaml", CHANGED_DELETED },
		{ VERDICT_ASK, "/home/me/project/link", CHANGED_LINK_OUT },
		{ VERDICT_ASK, "/home/me/.bashrc", CHANGED_WRITTEN },
		{ VERDICT_ASK, "/etc/passwd", CHANGED_WRITTEN },
		{ VERDICT_ALLOW, "/home/me/project/.git/hooks/x.sample",
		  CHANGED_WRITTEN },
		{ VERDICT_ALLOW, "/etc/passwd.txt", CHANGED_WRITTEN },
		/* rules that begin with a pattern at that place */
		{ VERDICT_ASK, "/home/me/project/vendor/.git/hooks/post-merge",
		  CHANGED_WRITTEN },
		{ VERDICT_ALLOW, "/home/me/project/vendor/.git/hooks/x.sample",
		  CHANGED_WRITTEN },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct change_facts f = { cases[i].path,      cases[i].what,
					  "/home/me/project", "/home/me",
					  "/home/me/.git",    cases[i].unseen };
		struct verdict v;

		policy_judge_change(policy_builtin(), &f, &v);
		if (v.kind != cases[i].want)
			fail_msg("%s: %s", cases[i].path, verdict_name(v.kind));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_builtin),
		cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_execs),
		cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_directory_later),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_text_limits),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
