/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/command.h"

#include <string.h>

#include "base/cleanup.h"
#include "policy/inner.h"
#include "policy/line.h"
#include "policy/match.h"
#include "policy/name.h"
#include "policy/tool.h"
#include "shell/cwd.h"

/*
 * Judges the command as @tool (NULL: without a table) reads it. True if a rule surely
 * matched.
 */
static bool judge_as(struct scene *s, const struct cmd *c, const struct doc_tool *tool)
{
	struct cmd as = *c;
	struct line l;
	bool matched;

	line_parse(s, tool, c, &l);
	as.from = program_source(c, &l);
	matched = match_rules(s, &as, &l);
	judge_inner(s, c, &l);
	return matched;
}

/*
 * Does the program lie outside the directories of the system? Then its name says nothing:
 * only the exec shows the program, and whose script it is.
 */
static bool is_own(struct scene *s, const char *program)
{
	static const char *const system[] = { "/bin/",	 "/sbin/", "/usr/", "/lib/",
					      "/lib64/", "/opt/",  "/nix/", "/snap/" };
	const char *path;
	size_t i;

	if (!strchr(program, '/'))
		return false;
	path = cwd_resolve(&s->ctx, s->ctx.cwd, program);
	for (i = 0; path && i < ARRAY_SIZE(system); i++)
		if (strncmp(path, system[i], strlen(system[i])) == 0)
			return false;
	return true;
}

static void judge_known(struct scene *s, const struct cmd *c)
{
	const struct doc_tool *tools[ARRAY_SIZE(c->names)];
	bool matched = false;
	size_t n = 0, i, k;

	/* A busybox that is called as rm is judged as both. */
	for (i = 0; i < ARRAY_SIZE(c->names) && c->names[i]; i++) {
		const struct doc_tool *t = tool_find(s->p, c->names[i]);

		for (k = 0; k < n && tools[k] != t; k++)
			;
		if (k == n)
			tools[n++] = t;
	}
	/* A name without a table counts only if no other name has one. */
	for (i = 0; i < n; i++)
		if (tools[i] || n == 1)
			matched |= judge_as(s, c, tools[i]);
	if (!matched && s->p->fallback > VERDICT_ALLOW)
		judge_apply(s, s->p->fallback, TRI_YES, "default", "no rule allows it",
			    NULL);
}

void judge_command(struct scene *s, struct cmd *c)
{
	const char *name;

	if (!c->n)
		return;
	if (s->depth >= DEPTH_MAX || !s->ctx.steps) {
		judge_defer(s);
		return;
	}
	s->ctx.steps--;
	s->depth++;
	if (c->words[0].flags & (WORD_OPEN | WORD_GLOB) && !c->names[0]) {
		judge_defer(s);
	} else {
		name = name_base(c->words[0].s);
		/* The name of a login shell begins with a dash. */
		name_add(c, name + (name[0] == '-' && name[1]));
		if (s->text && is_own(s, c->words[0].s))
			judge_defer(s);
		judge_known(s, c);
	}
	s->depth--;
}
