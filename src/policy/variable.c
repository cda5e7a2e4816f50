/* SPDX-License-Identifier: Apache-2.0 */
/* Variables whose values programs run, or in which they look for programs. */
#include "policy/variable.h"

#include <string.h>

#include "base/cleanup.h"
#include "policy/code.h"
#include "policy/name.h"
#include "shell/shell.h"

static const struct doc_variable *find(const struct policy *p, const char *name)
{
	size_t d;
	uint32_t i, k;

	for (d = p->docs_count; d--;)
		for (i = 0; i < p->docs[d]->variables_count; i++) {
			const struct doc_variable *v = &p->docs[d]->variables[i];

			for (k = 0; k < v->names_count; k++)
				if (name_matches(v->names[k], name))
					return v;
		}
	return NULL;
}

/* Does the list of directories have only directories of the system? */
static bool is_usual(const char *list)
{
	static const char *const usual[] = { "/bin",   "/sbin", "/usr", "/lib",
					     "/lib64", "/opt",	"/nix", "/snap" };
	size_t i, n;

	for (; *list; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		for (i = 0; i < ARRAY_SIZE(usual); i++) {
			size_t len = strlen(usual[i]);

			if (n >= len && memcmp(list, usual[i], len) == 0 &&
			    (n == len || list[len] == '/'))
				break;
		}
		if (i == ARRAY_SIZE(usual) || memmem(list, n, "..", 2))
			return false;
	}
	return true;
}

static void judge_value(struct scene *s, const struct doc_variable *v,
			const struct word *w)
{
	const char *text = w->s;

	switch (v->what) {
	case VARIABLE_TEXT:
		text += strspn(text, "|-");
		break;
	case VARIABLE_PROMPT:
		text = arena_printf(s->ctx.arena, ": \"%s\"", word_code(w));
		shell_run(&s->ctx, text, strlen(text), NULL, 0);
		return;
	case VARIABLE_OPTIONS:
		text = arena_printf(s->ctx.arena, "%s %s", v->of ? v->of : "", text);
		break;
	case VARIABLE_FILE:
		if (strchr(text, '/') && strcmp(text, "/dev/null") != 0)
			judge_defer(s);
		return;
	case VARIABLE_PATH:
		/* The old value of the variable was not set by this text. */
		if (!is_usual(text) ||
		    (w->flags & WORD_OPEN && !*text && !(w->flags & WORD_ITSELF)))
			judge_defer(s);
		return;
	case VARIABLE_CODE:
		if (*text && strcmp(text, "/dev/null") != 0)
			judge_defer(s);
		return;
	}
	if (w->flags & WORD_OPEN && !(w->flags & WORD_ITSELF))
		judge_defer(s);
	else
		shell_run(&s->ctx, text, strlen(text), NULL, 0);
}

void judge_variable(struct scene *s, const char *name, size_t len,
		    const struct word *value)
{
	const struct doc_variable *v;

	/* At an exec, programs that a variable names are judged when they run. */
	if (!s->text || !len)
		return;
	v = find(s->p, arena_str(s->ctx.arena, name, len));
	if (!v)
		return;
	if (value->flags & WORD_OPEN && !*value->s && v->what == VARIABLE_FILE)
		judge_defer(s);
	if (s->depth >= DEPTH_MAX || !s->ctx.steps) {
		judge_defer(s);
		return;
	}
	s->ctx.steps--;
	s->depth++;
	judge_value(s, v, value);
	s->depth--;
}
