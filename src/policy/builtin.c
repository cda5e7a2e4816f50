/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "policy/shell.h"

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
	struct names *n = arena_take(sh->s->arena, sizeof(*n));
	const char *slash = strrchr(name, '/');

	n->name = slash ? slash + 1 : name;
	n->next = out->names;
	out->names = n;
	out->text = out->commands++ ? NULL : text;
}

static const char *join(struct shell *sh, const struct cmd *c, size_t from,
			const char *between)
{
	const char *text = "";
	size_t i;

	for (i = from; i < c->n; i++)
		text = arena_printf(sh->s->arena, "%s%s%s", text, i > from ? between : "",
				    c->words[i].s);
	return text;
}

/* printf with a format in which only %s and a few escapes mean something; else NULL. */
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
				*ARENA_PUSH(sh->s->arena, out, n, cap) = '\n';
				f++;
			} else if (*f == '\\' || (*f == '%' && f[1] != 's')) {
				return NULL;
			} else if (*f == '%') {
				for (i = 0; arg < c->n && c->words[arg].s[i]; i++)
					*ARENA_PUSH(sh->s->arena, out, n,
						    cap) = c->words[arg].s[i];
				arg++;
				f++;
			} else {
				*ARENA_PUSH(sh->s->arena, out, n, cap) = *f;
			}
		}
	} while (arg > 2 && arg < c->n);
	*ARENA_PUSH(sh->s->arena, out, n, cap) = 0;
	return out;
}

/* What it will write to its standard output; NULL if we do not know. */
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
		if (from < c->n && strncmp(c->words[from].s, "-e", 2) == 0)
			return NULL;
		return arena_printf(sh->s->arena, "%s\n", join(sh, c, from, " "));
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
	struct scene *s = sh->s;
	size_t i = 1;

	while (i < c->n && c->words[i].s[0] == '-' && c->words[i].s[1])
		i++;
	if (i >= c->n)
		s->cwd = strcmp(c->words[0].s, "cd") == 0 ? s->home : NULL;
	else if (c->words[i].flags & (WORD_OPEN | WORD_GLOB) ||
		 strcmp(c->words[i].s, "-") == 0 || c->words[i].s[0] == '+')
		s->cwd = NULL;
	else
		s->cwd = path_clean(s, s->cwd, c->words[i].s);
}

static void do_eval(struct shell *sh, struct cmd *c, struct done *out)
{
	struct flow in = { c->from, c->input, c->input_open };

	if (known(c))
		shell_eval(sh, join(sh, c, 1, " "), &in, out);
	else
		judge_defer(sh->s);
	if (!known(c))
		shell_forget(sh);
}

static void do_trap(struct shell *sh, struct cmd *c, struct done *out)
{
	size_t i = 1;

	if (i < c->n && strcmp(c->words[i].s, "--") == 0)
		i++;
	if (i + 1 >= c->n || strcmp(c->words[i].s, "-") == 0 || c->words[i].s[0] == '-')
		return;
	if (c->words[i].flags & WORD_OPEN)
		judge_defer(sh->s);
	else
		shell_eval(sh, c->words[i].s, NULL, out);
}

static void do_alias(struct shell *sh, const struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++) {
		const char *eq = strchr(c->words[i].s, '=');
		struct func *f;

		if (!eq || c->words[i].flags & WORD_OPEN)
			continue;
		f = arena_take(sh->s->arena, sizeof(*f));
		f->name = arena_str(sh->s->arena, c->words[i].s,
				    (size_t)(eq - c->words[i].s));
		f->alias = eq + 1;
		f->next = sh->funcs;
		sh->funcs = f;
	}
}

/* read, mapfile, getopts: the names among its words have values we do not see. */
static void do_read(struct shell *sh, const struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++)
		if (c->words[i].s[0] != '-')
			shell_set(sh, c->words[i].s, strlen(c->words[i].s), unknown);
}

static void do_set(struct shell *sh, const struct cmd *c)
{
	size_t i = 1;

	while (i < c->n && (c->words[i].s[0] == '-' || c->words[i].s[0] == '+') &&
	       strcmp(c->words[i].s, "--") != 0)
		i++;
	if (i >= c->n)
		return;
	i += strcmp(c->words[i].s, "--") == 0;
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

static void call_function(struct shell *sh, const struct func *f, struct cmd *c,
			  struct done *out)
{
	struct flow in = { c->from, c->input, c->input_open };
	struct call call = { f->name, sh->calls };
	const struct word *args = sh->args;
	const char *src = sh->src;
	TSTree *tree = sh->tree;
	size_t nargs = sh->nargs;

	sh->calls = &call;
	if (f->alias) {
		shell_eval(sh,
			   arena_printf(sh->s->arena, "%s %s", f->alias,
					join(sh, c, 1, " ")),
			   &in, out);
	} else {
		sh->src = f->src;
		sh->tree = f->tree;
		sh->args = known(c) ? c->words + 1 : NULL;
		sh->nargs = c->n - 1;
		sh->s->nested += f->tree != tree;
		shell_walk(sh, f->body, &in, out);
		sh->s->nested -= f->tree != tree;
		sh->src = src;
		sh->tree = tree;
		sh->args = args;
		sh->nargs = nargs;
	}
	sh->calls = call.next;
}

/* A function or alias of that name. True: it was one. */
static bool run_function(struct shell *sh, struct cmd *c, struct done *out)
{
	const char *name = c->words[0].s;
	const struct func *f;
	const struct call *k;

	for (f = sh->funcs; f && strcmp(f->name, name) != 0; f = f->next)
		;
	if (!f)
		return false;
	for (k = sh->calls; k; k = k->next) {
		struct word bomb = { "(fork-bomb)", 0, NULL };
		struct cmd b = { .words = &bomb, .n = 1 };

		if (strcmp(k->name, name) != 0)
			continue;
		/* An alias may be named like what it stands for. */
		if (f->alias)
			return false;
		if (sh->piped)
			judge_command(sh->s, &b);
		else
			judge_defer(sh->s);
		return true;
	}
	call_function(sh, f, c, out);
	return true;
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
		{ "set", B_SET },      { "shift", B_SHIFT },
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
		/* It may set anything; its commands are seen when they run. */
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
	case B_NONE:
		break;
	}
}

void shell_command(struct shell *sh, struct cmd *c, struct done *out)
{
	const char *text;
	enum builtin b;
	bool plain = false;

	if (!c->n)
		return;
	text = output(sh, c);
	/* `command` and `builtin` keep functions out, but builtins are still builtins. */
	while (c->n > 1 && c->words[1].s[0] != '-' &&
	       (strcmp(c->words[0].s, "command") == 0 ||
		strcmp(c->words[0].s, "builtin") == 0)) {
		c->words++;
		c->n--;
		plain = true;
	}
	if (c->words[0].flags & WORD_OPEN) {
		judge_defer(sh->s);
		note(sh, out, "?", NULL);
		return;
	}
	if (!plain && run_function(sh, c, out))
		return;
	note(sh, out, c->words[0].s, text);
	b = builtin_of(c->words[0].s);
	judge_command(sh->s, c);
	if (b)
		run_builtin(sh, b, c, out);
	if (strcmp(c->words[0].s, "printf") == 0 && c->n > 2 &&
	    strcmp(c->words[1].s, "-v") == 0)
		shell_set(sh, c->words[2].s, strlen(c->words[2].s), unknown);
}
