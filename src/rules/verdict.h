/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RULES_VERDICT_H
#define STET_RULES_VERDICT_H

#include <stddef.h>

/* From the mildest to the strictest. */
enum verdict_kind {
	VERDICT_ALLOW,	    /* run as it is */
	VERDICT_DEFER,	    /* text only: cannot be known from it, the exec decides */
	VERDICT_CHECKPOINT, /* run, with a checkpoint before */
	VERDICT_ASK,  /* a person decides; if there is none, the verdict is a deny */
	VERDICT_DENY, /* the call fails */
	VERDICT_KILL, /* the transaction ends and is rolled back */
};

/* "allow", "defer", … */
const char *verdict_name(enum verdict_kind kind);

struct verdict {
	enum verdict_kind kind;
	/*
	 * The strings belong to the policy. All are NULL if no rule matched; hint is NULL if
	 * the rule has none.
	 */
	const char *rule, *why, *hint;
	size_t from, to; /* text only: the bytes [from, to) that were matched */
};

#endif
