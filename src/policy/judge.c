/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/judge.h"

#include <string.h>

#include "base/arena.h"
#include "policy/command.h"
#include "policy/match.h"
#include "policy/name.h"
#include "policy/parts.h"
#include "policy/path.h"
#include "policy/scene.h"
#include "policy/tri.h"
#include "policy/variable.h"
#include "rules/doc.h"
#include "shell/cmd.h"
#include "shell/cwd.h"
#include "shell/shell.h"

static void on_command(struct context *ctx, struct cmd *c)
{
	judge_command(scene_of(ctx), c);
}

static void on_unknown(struct context *ctx)
{
	judge_defer(scene_of(ctx));
}

static void on_write(struct context *ctx, const struct word *target)
{
	judge_write(scene_of(ctx), target);
}

static void on_variable(struct context *ctx, const char *name, size_t len,
			const struct word *value)
{
	judge_variable(scene_of(ctx), name, len, value);
}

static const char *find_cwd(struct context *ctx)
{
	const struct exec_facts *f = scene_of(ctx)->facts;

	return f->find_cwd(f->ctx);
}

static const struct shell_events events = {
	.command = on_command,
	.unknown = on_unknown,
	.write = on_write,
	.variable = on_variable,
	.find_cwd = find_cwd,
};

void policy_judge_exec(const struct policy *p, const struct exec_facts *f,
		       struct verdict *v)
{
	struct arena arena = { NULL };
	struct scene s = {
		.ctx = { .events = &events,
			 .arena = &arena,
			 .cwd = f->find_cwd ? cwd_later : f->cwd,
			 .home = f->home,
			 .steps = STEPS_MAX },
		.p = p,
		.v = v,
		.facts = f,
		.workspace = f->workspace,
		.text = f->ahead,
	};
	struct cmd c = { .exe = f->flags };
	size_t i;

	memset(v, 0, sizeof(*v));
	c.n = f->argc ? f->argc : 1;
	c.words = arena_take(&arena, c.n * sizeof(*c.words));
	c.words[0].s = f->exe ? f->exe : "";
	for (i = 0; i < f->argc; i++)
		c.words[i].s = f->argv[i];
	/*
	 * The program file says more than argv[0]; but applets such as busybox's go by
	 * argv[0].
	 */
	name_add(&c, f->known_as);
	name_add(&c, f->exe ? name_base(f->exe) : NULL);
	judge_command(&s, &c);
	arena_free(&arena);
}

int policy_judge_text(const struct policy *p, const char *text, size_t len,
		      const struct text_facts *f, struct verdict *v, struct err *e)
{
	struct arena arena = { NULL };
	struct scene s = {
		.ctx = { .events = &events,
			 .arena = &arena,
			 .cwd = f->cwd,
			 .home = f->home,
			 .steps = STEPS_MAX },
		.p = p,
		.v = v,
		.workspace = f->workspace,
		.text = true,
	};

	memset(v, 0, sizeof(*v));
	if (len > POLICY_TEXT_MAX)
		return err_set(e, ERR_USAGE, "the text is longer than %d bytes",
			       POLICY_TEXT_MAX);
	shell_run(&s.ctx, text, len, NULL, 0);
	arena_free(&arena);
	return 0;
}

/*
 * The home in which the changed file lies, which ~ in rules stands for: root may change
 * files in anybody's home.
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
		.ctx = { .events = &events, .arena = &arena, .home = home_of(&arena, f) },
		.p = p,
		.v = v,
		.workspace = f->workspace,
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
