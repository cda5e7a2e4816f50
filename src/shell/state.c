/* SPDX-License-Identifier: Apache-2.0 */
/* Variables, functions and parameters of a shell whose text is followed. */
#include "shell/state.h"

#include <string.h>

#include "base/cleanup.h"

static const struct word unknown = { "", WORD_OPEN, NULL };

/* Is it a variable whose value the shell itself changes? */
static bool is_shells_own(const char *name, size_t len)
{
	static const char *const own[] = {
		"_",	   "PWD",	"OLDPWD",	"RANDOM",   "REPLY",  "DIRSTACK",
		"OPTARG",  "OPTIND",	"LINENO",	"UID",	    "EUID",   "PPID",
		"SECONDS", "SRANDOM",	"HISTCMD",	"GROUPS",   "COPROC", "MAPFILE",
		"BASHPID", "SHELLOPTS", "EPOCHSECONDS", "BASHOPTS",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(own); i++)
		if (strlen(own[i]) == len && memcmp(own[i], name, len) == 0)
			return true;
	return len > 5 &&
	       (memcmp(name, "BASH_", 5) == 0 || memcmp(name, "FUNCN", 5) == 0);
}

static const struct var *find(const struct shell *sh, const char *name, size_t len)
{
	const struct var *v;

	for (v = sh->vars; v; v = v->next)
		if (strlen(v->name) == len && memcmp(v->name, name, len) == 0)
			return v;
	return NULL;
}

const struct word *shell_get(const struct shell *sh, const char *name, size_t len)
{
	const struct var *v = find(sh, name, len);

	if (v && (sh->opaque || is_shells_own(name, len)))
		return &unknown;
	return v ? &v->value : NULL;
}

static void add(struct shell *sh, const char *name, size_t len, struct word value,
		bool odd)
{
	struct var *v = arena_take(sh->ctx->arena, sizeof(*v));

	v->name = arena_str(sh->ctx->arena, name, len);
	v->value = value;
	v->odd = odd;
	v->next = sh->vars;
	sh->vars = v;
}

void shell_set(struct shell *sh, const char *name, size_t len, struct word value)
{
	const struct var *old = find(sh, name, len);

	if (old && old->odd)
		value = unknown;
	report_variable(sh->ctx, name, len, &value);
	add(sh, name, len, value, old && old->odd);
}

void shell_set_again(struct shell *sh, const char *name, size_t len, struct word value)
{
	const struct var *old = find(sh, name, len);

	add(sh, name, len, value, old && old->odd);
}

void shell_set_fixed(struct shell *sh, const char *name, size_t len)
{
	const struct word *w = shell_get(sh, name, len);

	add(sh, name, len, w ? *w : unknown, true);
}

void shell_set_odd(struct shell *sh, const char *name, size_t len)
{
	add(sh, name, len, unknown, true);
}

void shell_forget(struct shell *sh)
{
	const struct word *ifs = shell_get(sh, "IFS", 3);
	bool usual = ifs && !(ifs->flags & WORD_OPEN) && strcmp(ifs->s, " \t\n") == 0;

	sh->vars = NULL;
	sh->args = NULL;
	sh->ctx->cwd = NULL;
	shell_set(sh, "IFS", 3, usual ? (struct word){ " \t\n", 0, NULL } : unknown);
	shell_set_again(sh, "HOME", 4, unknown);
}

struct state state_of(const struct shell *sh)
{
	return (struct state){ sh->vars, sh->funcs, sh->args, sh->nargs, sh->ctx->cwd };
}

bool state_same(const struct shell *sh, const struct state *was)
{
	return sh->vars == was->vars && sh->funcs == was->funcs &&
	       sh->args == was->args && sh->ctx->cwd == was->cwd;
}

void state_back(struct shell *sh, const struct state *was)
{
	sh->vars = was->vars;
	sh->funcs = was->funcs;
	sh->args = was->args;
	sh->nargs = was->nargs;
	sh->ctx->cwd = was->cwd;
}

/* Functions that were defined since @was may be there or not. */
static void funcs_maybe(struct shell *sh, const struct func *was)
{
	const struct func *f = sh->funcs, **tail = &sh->funcs;

	for (; f && f != was; f = f->next) {
		struct func *copy = arena_take(sh->ctx->arena, sizeof(*copy));

		*copy = *f;
		copy->maybe = true;
		*tail = copy;
		tail = &copy->next;
	}
	*tail = f;
}

void state_maybe(struct shell *sh, const struct state *was)
{
	const struct var *now = sh->vars, *v;
	const char *cwd = sh->ctx->cwd;

	funcs_maybe(sh, was->funcs);
	for (v = now; v && v != was->vars; v = v->next)
		;
	if (!v && was->vars) {
		shell_forget(sh);
		return;
	}
	sh->vars = was->vars;
	for (v = now; v != was->vars; v = v->next)
		add(sh, v->name, strlen(v->name), unknown, v->odd);
	if (!cwd || !was->cwd || strcmp(cwd, was->cwd) != 0)
		sh->ctx->cwd = NULL;
	if (sh->args != was->args)
		sh->args = NULL;
}
