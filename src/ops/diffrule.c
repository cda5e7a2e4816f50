/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/diffrule.h"

#include <stdio.h>

#include "change/risk.h"

static unsigned facts_of(const struct change *c, const char *target,
			 const char *workspace)
{
	const mode_t was = c->before.st_mode, is = c->after.st_mode;
	unsigned what = 0;

	if (c->kind == CHANGE_DELETE || !is)
		return CHANGED_DELETED;
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

const char *diff_judge(void *arg, const struct change *c, const char *target, bool *deny)
{
	struct diff_rules *d = arg;
	struct change_facts f = { .path = c->path,
				  .workspace = d->workspace,
				  .home = d->home };
	struct verdict v;

	*deny = false;
	/* A directory says nothing by itself: what is in it is a change of its own. */
	if (!d->p || S_ISDIR(c->after.st_mode) ||
	    (c->kind == CHANGE_MODIFY && !(c->what & ~(unsigned)CHANGE_TIMES)))
		return NULL;
	f.what = facts_of(c, target, d->workspace);
	policy_judge_change(d->p, &f, &v);
	if (v.kind < VERDICT_ASK)
		return NULL;
	*deny = v.kind >= VERDICT_DENY;
	snprintf(d->words, sizeof(d->words), "%s: %s", v.rule, v.why ? v.why : "");
	return d->words;
}
