/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/judge.h"

#include <string.h>

#include "base/cleanup.h"

void judge_defer(struct scene *s)
{
	if (s->text && s->v->kind < VERDICT_DEFER)
		*s->v = (struct verdict){
			.kind = VERDICT_DEFER,
			.from = s->from,
			.to = s->to,
		};
}

void judge_apply(struct scene *s, enum verdict_kind kind, enum tri sure, const char *rule,
		 const char *why, const char *hint)
{
	struct verdict v = { kind, rule, why, hint, s->from, s->to };

	if (sure == TRI_NO || (sure == TRI_MAYBE && (!s->text || kind == VERDICT_ALLOW)))
		return;
	if (sure == TRI_MAYBE)
		v.kind = VERDICT_DEFER;
	if (v.kind < s->v->kind || (v.kind == s->v->kind && s->v->rule))
		return;
	*s->v = v;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Adds a name that it is not yet known by. */
static void add_name(struct cmd *c, const char *name)
{
	size_t i;

	if (!name || !*name)
		return;
	for (i = 0; i < ARRAY_SIZE(c->names); i++) {
		if (!c->names[i]) {
			c->names[i] = name;
			return;
		}
		if (strcmp(c->names[i], name) == 0)
			return;
	}
}

/* The command as one of its names has it. True if a rule matched for sure. */
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
 * A program outside the directories of the system may be anything, whatever it is called:
 * what it is, and whose script, is seen at the exec.
 */
static bool is_own(struct scene *s, const char *program)
{
	static const char *const system[] = { "/bin/",	 "/sbin/", "/usr/", "/lib/",
					      "/lib64/", "/opt/",  "/nix/", "/snap/" };
	const char *path;
	size_t i;

	if (!strchr(program, '/'))
		return false;
	path = path_clean(s, s->cwd, program);
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

	/* busybox called as rm is to be read in both ways. */
	for (i = 0; i < ARRAY_SIZE(c->names) && c->names[i]; i++) {
		const struct doc_tool *t = tool_find(s->p, c->names[i]);

		for (k = 0; k < n && tools[k] != t; k++)
			;
		if (k == n)
			tools[n++] = t;
	}
	/* What has no table is read without one only if nothing else is known. */
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
	if (s->depth >= DEPTH_MAX || !s->steps) {
		judge_defer(s);
		return;
	}
	s->steps--;
	s->depth++;
	if (c->words[0].flags & (WORD_OPEN | WORD_GLOB) && !c->names[0]) {
		judge_defer(s);
	} else {
		name = base_name(c->words[0].s);
		/* A login shell has a dash before its name. */
		add_name(c, name + (name[0] == '-' && name[1]));
		if (s->text && is_own(s, c->words[0].s))
			judge_defer(s);
		judge_known(s, c);
	}
	s->depth--;
}

void policy_judge_exec(const struct policy *p, const struct exec_facts *f,
		       struct verdict *v)
{
	struct arena arena = { NULL };
	struct scene s = {
		.p = p,
		.arena = &arena,
		.v = v,
		.cwd = f->find_cwd ? cwd_later : f->cwd,
		.facts = f,
		.workspace = f->workspace,
		.home = f->home,
		.text = f->ahead,
		.steps = STEPS_MAX,
	};
	struct cmd c = { .exe = f->flags };
	size_t i;

	memset(v, 0, sizeof(*v));
	c.n = f->argc ? f->argc : 1;
	c.words = arena_take(&arena, c.n * sizeof(*c.words));
	c.words[0].s = f->exe ? f->exe : "";
	for (i = 0; i < f->argc; i++)
		c.words[i].s = f->argv[i];
	/* What it is says more than what it is called; but applets go by their name. */
	add_name(&c, f->known_as);
	add_name(&c, f->exe ? base_name(f->exe) : NULL);
	judge_command(&s, &c);
	arena_free(&arena);
}

int policy_judge_text(const struct policy *p, const char *text, size_t len,
		      const struct text_facts *f, struct verdict *v, struct err *e)
{
	struct arena arena = { NULL };
	struct scene s = {
		.p = p,
		.arena = &arena,
		.v = v,
		.cwd = f->cwd,
		.workspace = f->workspace,
		.home = f->home,
		.text = true,
		.steps = STEPS_MAX,
	};

	memset(v, 0, sizeof(*v));
	if (len > POLICY_TEXT_MAX)
		return err_set(e, ERR_USAGE, "the text is longer than %d bytes",
			       POLICY_TEXT_MAX);
	judge_shell(&s, text, len, NULL, 0);
	arena_free(&arena);
	return 0;
}

/*
 * Whose home it lies in: root's changes may be anybody's. What is said of ~ is said of that one.
 */
static const char *home_of(struct arena *a, const struct change_facts *f)
{
	size_t n = f->home ? strlen(f->home) : 0, len;

	if (n > 1 && strncmp(f->path, f->home, n) == 0 &&
	    (f->path[n] == '/' || !f->path[n]))
		return f->home;
	if (strncmp(f->path, "/root/", 6) == 0)
		return "/root";
	if (strncmp(f->path, "/home/", 6) != 0)
		return f->home;
	len = strcspn(f->path + 6, "/");
	return len ? arena_str(a, f->path, 6 + len) : f->home;
}

void policy_judge_change(const struct policy *p, const struct change_facts *f,
			 struct verdict *v)
{
	struct arena arena = { NULL };
	struct scene s = {
		.p = p,
		.arena = &arena,
		.v = v,
		.workspace = f->workspace,
		.home = home_of(&arena, f),
		.git = f->git,
	};
	struct word w = { f->path, 0, NULL };
	size_t d;
	uint32_t i;

	memset(v, 0, sizeof(*v));
	for (d = 0; d < p->docs_count; d++) {
		for (i = 0; i < p->docs[d]->diff_count; i++) {
			const struct doc_diff *r = &p->docs[d]->diff[i];

			if ((r->what && !(r->what & f->what)) ||
			    (r->unseen && !f->unseen) || policy_is_off(p, r->id))
				continue;
			if (r->paths && path_matches(&s, r->paths, &w, true) != TRI_YES)
				continue;
			judge_apply(&s, r->verdict, TRI_YES, r->id, r->why, r->hint);
		}
	}
	arena_free(&arena);
}
