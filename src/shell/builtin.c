/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/builtin.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "shell/cwd.h"
#include "shell/declare.h"
#include "shell/walk.h"

static const struct word unknown = { "", WORD_OPEN, NULL };

static bool known(const struct cmd *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->words[i].flags & WORD_OPEN)
			return false;
	return !c->more;
}

static void note(struct shell *sh, struct done *out, const char *name, const char *text)
{
	struct names *n = arena_take(sh->ctx->arena, sizeof(*n));
	const char *slash = strrchr(name, '/');

	n->name = slash ? slash + 1 : name;
	n->next = out->names;
	out->names = n;
	out->text = out->commands++ ? NULL : text;
}

static const char *join(struct shell *sh, const struct cmd *c, size_t from,
			const char *between)
{
	size_t i, n = 0, cap = 0;
	char *text = NULL;
	const char *p;

	for (i = from; i < c->n; i++) {
		for (p = i > from ? between : ""; *p; p++)
			*ARENA_PUSH(sh->ctx->arena, text, n, cap) = *p;
		for (p = c->words[i].s; *p; p++)
			*ARENA_PUSH(sh->ctx->arena, text, n, cap) = *p;
	}
	*ARENA_PUSH(sh->ctx->arena, text, n, cap) = 0;
	return text;
}

/*
 * The output of a printf whose format has no more than %s and a few escapes; otherwise
 * NULL.
 */
static const char *printed(struct shell *sh, const struct cmd *c)
{
	size_t arg = 2, n = 0, cap = 0, i;
	char *out = NULL;
	const char *f;

	if (c->n < 2 || c->words[1].s[0] == '-')
		return NULL;
	do {
		for (f = c->words[1].s; *f; f++) {
			if (*f == '\\' && f[1] == 'n') {
				*ARENA_PUSH(sh->ctx->arena, out, n, cap) = '\n';
				f++;
			} else if (*f == '\\' || (*f == '%' && f[1] != 's')) {
				return NULL;
			} else if (*f == '%') {
				for (i = 0; arg < c->n && c->words[arg].s[i]; i++)
					*ARENA_PUSH(sh->ctx->arena, out, n,
						    cap) = c->words[arg].s[i];
				arg++;
				f++;
			} else {
				*ARENA_PUSH(sh->ctx->arena, out, n, cap) = *f;
			}
		}
	} while (arg > 2 && arg < c->n);
	*ARENA_PUSH(sh->ctx->arena, out, n, cap) = 0;
	return out;
}

/* The text that the command will write to its standard output; NULL: not known. */
static const char *output(struct shell *sh, const struct cmd *c)
{
	const char *name = c->words[0].s;
	size_t from = 1;

	if (!known(c))
		return NULL;
	if (strcmp(name, "echo") == 0) {
		while (from < c->n && (strcmp(c->words[from].s, "-n") == 0 ||
				       strcmp(c->words[from].s, "-E") == 0))
			from++;
		/* Some shells expand escapes even without -e. */
		if ((from < c->n && strncmp(c->words[from].s, "-e", 2) == 0) ||
		    strchr(join(sh, c, from, " "), '\\'))
			return NULL;
		return arena_printf(sh->ctx->arena, "%s\n", join(sh, c, from, " "));
	}
	if (strcmp(name, "printf") == 0)
		return printed(sh, c);
	if (strcmp(name, "cat") == 0 && (c->n == 1 || strcmp(c->words[1].s, "-") == 0))
		return c->input;
	if (strcmp(name, "which") == 0 && c->n == 2)
		return c->words[1].s;
	if (strcmp(name, "command") == 0 && c->n == 3 && strcmp(c->words[1].s, "-v") == 0)
		return c->words[2].s;
	return NULL;
}

static void do_cd(struct shell *sh, const struct cmd *c)
{
	const struct word *home = shell_get(sh, "HOME", 4);
	struct context *ctx = sh->ctx;
	size_t i = 1;

	while (i < c->n && c->words[i].s[0] == '-' && c->words[i].s[1])
		i++;
	if (i >= c->n)
		ctx->cwd = strcmp(c->words[0].s, "cd") == 0 && home &&
					   !(home->flags & WORD_OPEN)
				   ? home->s
				   : NULL;
	else if (shell_get(sh, "CDPATH", 6) && !strchr("/.", c->words[i].s[0]))
		ctx->cwd = NULL;
	else if (c->words[i].flags & (WORD_OPEN | WORD_GLOB) ||
		 strcmp(c->words[i].s, "-") == 0 || c->words[i].s[0] == '+')
		ctx->cwd = NULL;
	else
		ctx->cwd = cwd_resolve(ctx, ctx->cwd, c->words[i].s);
}

static void do_eval(struct shell *sh, struct cmd *c, struct done *out)
{
	struct flow in = { .from = c->from, .text = c->input, .open = c->input_open };

	size_t from = 1 + (c->n > 1 && strcmp(c->words[1].s, "--") == 0);

	if (known(c)) {
		shell_eval(sh, join(sh, c, from, " "), &in, out);
	} else {
		report_unknown(sh->ctx);
		shell_forget(sh);
	}
}

/*
 * The text of a trap is followed at once, in the present state, and again in run_traps()
 * if the state has changed by then.
 */
static void do_trap(struct shell *sh, struct cmd *c, struct done *out)
{
	struct trap *t;
	size_t i = 1;

	if (i < c->n && strcmp(c->words[i].s, "--") == 0)
		i++;
	if (i + 1 >= c->n || strcmp(c->words[i].s, "-") == 0 ||
	    (i == 1 && c->words[i].s[0] == '-'))
		return;
	if (c->words[i].flags & WORD_OPEN) {
		report_unknown(sh->ctx);
		return;
	}
	t = arena_take(sh->ctx->arena, sizeof(*t));
	t->text = c->words[i].s;
	t->was = state_of(sh);
	t->next = sh->traps;
	sh->traps = t;
	shell_eval(sh, t->text, NULL, out);
	state_maybe(sh, &t->was);
}

void run_traps(struct shell *sh, const struct trap *until)
{
	const struct trap *t;

	/* The trap sees functions and variables that were set after it. */
	for (t = sh->traps; t && t != until; t = t->next) {
		struct state was = state_of(sh);
		struct done done = { 0 };

		if (state_same(sh, &t->was))
			continue;
		state_maybe(sh, &t->was);
		sh->funcs = was.funcs;
		shell_eval(sh, t->text, NULL, &done);
		state_back(sh, &was);
	}
}

static void do_alias(struct shell *sh, const struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++) {
		const char *eq = strchr(c->words[i].s, '=');
		struct func *f;

		if (!eq)
			continue;
		f = arena_take(sh->ctx->arena, sizeof(*f));
		f->name = arena_str(sh->ctx->arena, c->words[i].s,
				    (size_t)(eq - c->words[i].s));
		f->alias = eq + 1;
		f->open = c->words[i].flags & WORD_OPEN;
		f->maybe = true; /* scripts expand aliases only with an option */
		f->next = sh->funcs;
		sh->funcs = f;
	}
}

/* read, mapfile, getopts: the variables among the words get values that are not known. */
static void do_read(struct shell *sh, const struct cmd *c)
{
	size_t i, k;

	for (i = 1; i < c->n; i++) {
		const struct word *w = &c->words[i];

		walk_subscripts(sh, w->s);
		sh->opaque |= (w->flags & WORD_OPEN) != 0;
		k = strcspn(w->s, "[");
		if (w->s[0] != '-')
			shell_set(sh, w->s, k, unknown);
		/* -aNAME */
		for (k = 2; w->s[0] == '-' && w->s[1] && w->s[k]; k++)
			shell_set(sh, w->s + k, strlen(w->s + k), unknown);
	}
	sh->opaque |= c->more;
}

/* printf -v NAME, wait -p NAME. */
static void do_store(struct shell *sh, const struct cmd *c, char option)
{
	const struct word *w;

	if (c->n < 2 || c->words[1].s[0] != '-' || c->words[1].s[1] != option)
		return;
	w = &c->words[1];
	if (!w->s[2] && c->n > 2)
		w = &c->words[2];
	walk_subscripts(sh, w->s);
	sh->opaque |= (w->flags & WORD_OPEN) != 0;
	if (w == &c->words[1])
		shell_set(sh, w->s + 2, strcspn(w->s + 2, "["), unknown);
	else
		shell_set(sh, w->s, strcspn(w->s, "["), unknown);
}

/* Evaluates the words of let, test and [, whose variables may have subscripts. */
static void do_evaluate(struct shell *sh, const struct cmd *c, bool sets)
{
	size_t i;

	for (i = 1; i < c->n; i++) {
		const char *p = strchr(c->words[i].s, '[');

		if (sets || (p && p != c->words[i].s))
			walk_subscripts(sh, c->words[i].s);
		if (sets)
			walk_arithmetic(sh, c->words[i].s, strlen(c->words[i].s));
		if (sets && c->words[i].flags & WORD_OPEN)
			report_unknown(sh->ctx);
	}
}

static void do_set(struct shell *sh, const struct cmd *c)
{
	size_t i = 1;

	while (i < c->n && (c->words[i].s[0] == '-' || c->words[i].s[0] == '+') &&
	       strcmp(c->words[i].s, "--") != 0) {
		/* -o takes a NAME, also where o ends a group of letters. */
		size_t len = strlen(c->words[i].s);

		i += 1 + (len > 1 && c->words[i].s[len - 1] == 'o');
	}
	if (i >= c->n && !c->more)
		return;
	if (i < c->n)
		i += strcmp(c->words[i].s, "--") == 0;
	if (i > c->n)
		i = c->n;
	sh->args = known(c) ? c->words + i : NULL;
	sh->nargs = c->n - i;
}

static void do_shift(struct shell *sh, const struct cmd *c)
{
	if (c->n == 1 && sh->nargs) {
		sh->args += sh->args != NULL;
		sh->nargs--;
	} else {
		sh->args = NULL;
	}
}

/* Local variables get the values that they had before the function ran. */
static void drop_locals(struct shell *sh, const struct names *local,
			const struct var *was)
{
	const struct shell old = { .ctx = sh->ctx, .vars = was };

	for (; local; local = local->next) {
		size_t len = strlen(local->name);
		const struct word *w = shell_get(&old, local->name, len);

		shell_set_again(sh, local->name, len, w ? *w : unknown);
	}
}

static void call_function(struct shell *sh, const struct func *f, struct cmd *c,
			  struct done *out)
{
	struct flow in = { .from = c->from, .text = c->input, .open = c->input_open };
	struct call call = { f->name, sh->calls };
	struct state was = state_of(sh);
	const struct names *local = sh->local;
	const char *src = sh->src;
	TSTree *tree = sh->tree;
	bool returned = sh->returned;

	sh->calls = &call;
	if (f->alias) {
		/* An alias is expanded as text: words that are not known may be syntax. */
		if (!known(c) || f->open)
			report_unknown(sh->ctx);
		shell_eval(sh,
			   arena_printf(sh->ctx->arena, "%s %s", f->alias,
					join(sh, c, 1, " ")),
			   &in, out);
	} else {
		sh->src = f->src;
		sh->tree = f->tree;
		sh->args = known(c) ? c->words + 1 : NULL;
		sh->nargs = c->n - 1;
		sh->local = NULL;
		sh->returned = false;
		sh->ctx->nested += f->tree != tree;
		shell_walk(sh, f->body, &in, out);
		sh->ctx->nested -= f->tree != tree;
		sh->src = src;
		sh->tree = tree;
		sh->args = was.args;
		sh->nargs = was.nargs;
		drop_locals(sh, sh->local, was.vars);
		if (sh->returned)
			state_maybe(sh, &was);
		sh->local = local;
		sh->returned = returned;
	}
	sh->calls = call.next;
}

/*
 * True if the function is running already. A function that calls itself in a pipe is a
 * fork bomb; any other recursion is not followed.
 */
static bool runs_already(struct shell *sh, const struct func *f)
{
	struct word bomb = { "(fork-bomb)", 0, NULL };
	struct cmd b = { .words = &bomb, .n = 1 };
	const struct call *k;

	for (k = sh->calls; k && strcmp(k->name, f->name) != 0; k = k->next)
		;
	/* An alias may have the name of the command that it stands for. */
	if (!k || f->alias)
		return k != NULL;
	if (sh->piped)
		report_command(sh->ctx, &b);
	else
		report_unknown(sh->ctx);
	return true;
}

bool run_function(struct shell *sh, struct cmd *c, struct done *out)
{
	const char *name = c->words[0].s;
	const struct func *f, *next;
	bool sure = false;

	for (f = sh->funcs; f && !sure; f = next) {
		struct state was = state_of(sh);

		next = f->next;
		if (strcmp(f->name, name) != 0)
			continue;
		if (f->gone && !f->maybe)
			return false;
		if (f->gone)
			continue;
		sure = !f->maybe;
		if (runs_already(sh, f)) {
			if (f->alias)
				sure = false;
			continue;
		}
		call_function(sh, f, c, out);
		if (f->maybe)
			state_maybe(sh, &was);
	}
	return sure;
}

enum builtin {
	B_NONE,
	B_CD,
	B_EVAL,
	B_SOURCE,
	B_TRAP,
	B_ALIAS,
	B_READ,
	B_SET,
	B_SHIFT,
	B_PRINTF,
	B_WAIT,
	B_LET,
	B_TEST,
	B_RETURN,
};

static enum builtin builtin_of(const char *name)
{
	static const struct {
		const char *name;
		enum builtin b;
	} table[] = {
		{ "cd", B_CD },	       { "pushd", B_CD },	{ "popd", B_CD },
		{ "eval", B_EVAL },    { "source", B_SOURCE },	{ ".", B_SOURCE },
		{ "trap", B_TRAP },    { "alias", B_ALIAS },	{ "read", B_READ },
		{ "mapfile", B_READ }, { "readarray", B_READ }, { "getopts", B_READ },
		{ "set", B_SET },      { "shift", B_SHIFT },	{ "printf", B_PRINTF },
		{ "wait", B_WAIT },    { "let", B_LET },	{ "test", B_TEST },
		{ "[", B_TEST },       { "return", B_RETURN },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].b;
	return B_NONE;
}

static void run_builtin(struct shell *sh, enum builtin b, struct cmd *c, struct done *out)
{
	switch (b) {
	case B_CD:
		do_cd(sh, c);
		break;
	case B_EVAL:
		do_eval(sh, c, out);
		break;
	case B_SOURCE:
		/* The file may set anything. The commands in it are judged when they run. */
		shell_forget(sh);
		break;
	case B_TRAP:
		do_trap(sh, c, out);
		break;
	case B_ALIAS:
		do_alias(sh, c);
		break;
	case B_READ:
		do_read(sh, c);
		break;
	case B_SET:
		do_set(sh, c);
		break;
	case B_SHIFT:
		do_shift(sh, c);
		break;
	case B_PRINTF:
		do_store(sh, c, 'v');
		break;
	case B_WAIT:
		do_store(sh, c, 'p');
		break;
	case B_LET:
		do_evaluate(sh, c, true);
		break;
	case B_TEST:
		do_evaluate(sh, c, false);
		break;
	case B_RETURN:
		sh->returned = true;
		break;
	case B_NONE:
		break;
	}
}

/* Removes reserved words that the grammar takes for a program: time f, coproc X { f; */
static void strip_reserved(struct shell *sh, struct cmd *c)
{
	static const char *const opening[] = { "{",    "!",  "then",  "do",   "else",
					       "elif", "if", "while", "until" };
	/* Constructs that the grammar has failed to parse. */
	static const char *const lost[] = { "for", "case", "select", "function", "[[" };
	const char *name;
	size_t i, k, n;

	for (; c->n; c->words += n, c->n -= n) {
		name = c->words[0].s;
		n = 1;
		if (strcmp(name, "time") == 0 && c->n > 1) {
			while (n < c->n && (strcmp(c->words[n].s, "-p") == 0 ||
					    strcmp(c->words[n].s, "--") == 0))
				n++;
			/* With any other option, time is a program. */
			if (n < c->n && c->words[n].s[0] == '-')
				return;
			continue;
		}
		if (strcmp(name, "coproc") == 0 && c->n > 1) {
			n += c->n > 2 && strcmp(c->words[2].s, "{") == 0;
			continue;
		}
		for (i = 0; i < ARRAY_SIZE(opening); i++)
			if (strcmp(opening[i], name) == 0)
				break;
		for (k = 0; i == ARRAY_SIZE(opening) && k < ARRAY_SIZE(lost); k++)
			if (strcmp(lost[k], name) == 0)
				report_unknown(sh->ctx);
		if (i == ARRAY_SIZE(opening))
			return;
		if (i > 1)
			report_unknown(sh->ctx);
	}
}

/* Carries out assignments before the command that the grammar has taken for words of it. */
static void strip_assignments(struct shell *sh, struct cmd *c)
{
	while (c->n && !(c->words[0].flags & WORD_OPEN && !strchr(c->words[0].s, '='))) {
		const char *s = c->words[0].s;
		size_t len = strcspn(s, "=");
		struct word value = c->words[0];

		if (!s[len] || !len || isdigit((unsigned char)*s) ||
		    strspn(s, "_0123456789abcdefghijklmnopqrstuvwxyz"
			      "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != len)
			return;
		value.s = s + len + 1;
		walk_value(sh, &value);
		shell_set(sh, s, len, value);
		c->words++;
		c->n--;
	}
}

/*
 * Removes `command` and `builtin`. True: functions do not count, only builtins and
 * programs.
 */
static bool strip_plain(struct cmd *c)
{
	bool plain = false;
	size_t i;

	while (c->n > 1 && (strcmp(c->words[0].s, "command") == 0 ||
			    strcmp(c->words[0].s, "builtin") == 0)) {
		for (i = 1; i < c->n && (strcmp(c->words[i].s, "-p") == 0 ||
					 strcmp(c->words[i].s, "--") == 0);
		     i++)
			;
		if (i == c->n || c->words[i].s[0] == '-')
			return plain;
		c->words += i;
		c->n -= i;
		plain = true;
	}
	return plain;
}

static void run_words(struct shell *sh, struct cmd *c, struct done *out)
{
	const char *text;
	enum builtin b;
	bool plain;

	text = output(sh, c);
	plain = strip_plain(c);
	if (c->words[0].flags & WORD_OPEN) {
		report_unknown(sh->ctx);
		note(sh, out, "?", NULL);
		return;
	}
	if (!plain && run_function(sh, c, out))
		return;
	note(sh, out, c->words[0].s, text);
	b = builtin_of(c->words[0].s);
	report_command(sh->ctx, c);
	if (b)
		run_builtin(sh, b, c, out);
	else
		run_declaration(sh, c);
}

void shell_command(struct shell *sh, struct cmd *c, struct done *out)
{
	const struct var *was, *set;

	strip_reserved(sh, c);
	was = sh->vars;
	strip_assignments(sh, c);
	set = sh->vars;
	if (!c->n)
		return;
	run_words(sh, c, out);
	/* An assignment before a command holds for that command alone. */
	for (; set && set != was; set = set->next)
		shell_set_again(sh, set->name, strlen(set->name), unknown);
}
