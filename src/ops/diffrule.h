/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_DIFFRULE_H
#define STET_OPS_DIFFRULE_H

#include "change/change.h"
#include "ops/ctx.h"

/* The diff rules of a policy, for the changes of one transaction. */
struct diff_rules {
	const struct policy *p; /* NULL: there is nothing to say */
	const char *workspace, *home;
	char words[512];
};

/*
 * What the rules say about a change; see commit_wish.judge, for which it is made. @arg is a
 * struct diff_rules, whose words it gives.
 */
const char *diff_judge(void *arg, const struct change *c, const char *target, bool *deny);

#endif
