/* SPDX-License-Identifier: Apache-2.0 */
#include "session/diffrule.h"
#include "policy/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "diff/risk.h"
#include "session/gitdir.h"

/* Is the host's object gone, or another one? */
static bool is_replaced(const struct change *c)
{
	return c->kind == CHANGE_TYPE || (c->kind == CHANGE_ADD && c->before.st_mode) ||
	       (c->kind == CHANGE_MODIFY && c->what & CHANGE_CONTENT);
}

static unsigned facts_of(const struct change *c, const char *target,
			 const char *workspace)
{
	const unsigned rights = CHANGE_MODE | CHANGE_OWNER | CHANGE_XATTR;
	const mode_t was = c->before.st_mode, is = c->after.st_mode;
	unsigned what = 0;

	if (c->kind == CHANGE_DELETE || !is)
		return CHANGED_DELETED;
	if (is_replaced(c))
		what |= CHANGED_REPLACED;
	if (c->kind == CHANGE_MODIFY && c->what & rights)
		what |= CHANGED_RIGHTS;
	/* Otherwise a directory says nothing: what is in it is a change of its own. */
	if (S_ISDIR(is))
		return what;
	if (c->kind != CHANGE_MODIFY || c->what & CHANGE_CONTENT)
		what |= CHANGED_WRITTEN;
	if (S_ISREG(is) && is & (S_ISUID | S_ISGID) & ~(S_ISREG(was) ? was : 0))
		what |= CHANGED_SETUID;
	if (S_ISREG(is) && is & 0111 && !(S_ISREG(was) && was & 0111))
		what |= CHANGED_EXECUTABLE;
	if (S_ISLNK(is) && target && workspace && risk_leaves(c->path, target, workspace))
		what |= CHANGED_LINK_OUT;
	return what;
}

static void add_programs(struct diff_rules *d, const char *path)
{
	static const char *const own[] = { "bin", ".local/bin" };
	static const char *const usual[] = { "/usr/local/sbin", "/usr/local/bin",
					     "/usr/sbin",	"/usr/bin",
					     "/sbin",		"/bin" };

	/* A login puts them before the others as soon as they are there. */
	for (size_t i = 0; d->home && i < ARRAY_SIZE(own); i++)
		strv_push(&d->programs, xasprintf("%s/%s", d->home, own[i]));
	while (path && *path) {
		size_t n = strcspn(path, ":");

		if (*path == '/')
			strv_push(&d->programs, xstrndup(path, n));
		path += n + (path[n] == ':');
	}
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		strv_push(&d->programs, xstrdup(usual[i]));
}

void diff_rules_open(struct diff_rules *d, const struct op_ctx *ctx,
		     const struct policy *p, const char *workspace, bool unseen)
{
	const char *home = op_ctx_env(ctx, "HOME");

	*d = (struct diff_rules){ .p = p, .workspace = workspace, .unseen = unseen };
	/* Changes are known by their real paths. */
	d->home = home ? realpath(home, NULL) : NULL;
	d->git = p && unseen && workspace ? gitdir_of(workspace) : NULL;
	add_programs(d, op_ctx_env(ctx, "PATH"));
}

void diff_rules_close(struct diff_rules *d)
{
	free(d->home);
	free(d->git);
	strv_free(d->programs);
	d->home = d->git = NULL;
	d->programs = NULL;
}

/* Is it in such a directory, and has another one a program of that name? */
static bool shadows(const struct diff_rules *d, const struct change *c)
{
	const char *name = strrchr(c->path, '/');
	const size_t n = name ? (size_t)(name - c->path) : 0;
	bool in = false;

	if (c->kind == CHANGE_MODIFY ||
	    !(S_ISREG(c->after.st_mode) || S_ISLNK(c->after.st_mode)))
		return false;
	for (size_t i = 0; d->programs && d->programs[i] && !in; i++)
		in = strncmp(d->programs[i], c->path, n) == 0 && !d->programs[i][n];
	for (size_t i = 0; in && d->programs[i]; i++) {
		AUTO_FREE char *other = xasprintf("%s%s", d->programs[i], name);

		if (strcmp(other, c->path) != 0 && access(other, X_OK) == 0)
			return true;
	}
	return false;
}

const char *diff_judge(void *arg, const struct change *c, const char *target, bool *deny)
{
	struct diff_rules *d = arg;
	struct change_facts f = { .path = c->path,
				  .workspace = d->workspace,
				  .home = d->home,
				  .git = d->git,
				  .unseen = d->unseen };
	struct verdict v;

	*deny = false;
	if (!d->p || (c->kind == CHANGE_MODIFY && !(c->what & ~(unsigned)CHANGE_TIMES)))
		return NULL;
	f.what = facts_of(c, target, d->workspace);
	if (shadows(d, c))
		f.what |= CHANGED_SHADOWS;
	if (!f.what)
		return NULL;
	policy_judge_change(d->p, &f, &v);
	if (v.kind < VERDICT_ASK)
		return NULL;
	*deny = v.kind >= VERDICT_DENY;
	snprintf(d->words, sizeof(d->words), "%s: %s", v.rule, v.why ? v.why : "");
	return d->words;
}
