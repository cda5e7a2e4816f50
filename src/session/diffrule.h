/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_DIFFRULE_H
#define STET_SESSION_DIFFRULE_H

#include "call/ctx.h"
#include "diff/change.h"

/* The diff rules of a policy, for the changes of one transaction. */
struct diff_rules {
	const struct policy *p; /* NULL: there is nothing to say */
	const char *workspace;
	char *home, *git; /* its own; or NULL */
	char **programs;  /* directories in which programs are looked for */
	bool unseen;	  /* nobody looks at the changes before they are committed */
	char words[512];
};

/* @p and @workspace must outlive it. Whose home and PATH count, @ctx knows. */
void diff_rules_open(struct diff_rules *d, const struct op_ctx *ctx,
		     const struct policy *p, const char *workspace, bool unseen);
void diff_rules_close(struct diff_rules *d);

/*
 * The verdict of the diff rules on a change; for commit_wish.judge. @arg is a struct
 * diff_rules, which holds the returned words.
 */
const char *diff_judge(void *arg, const struct change *c, const char *target, bool *deny);

#endif
