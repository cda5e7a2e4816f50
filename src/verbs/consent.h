/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_CONSENT_H
#define STET_VERBS_CONSENT_H

#include "call/verb.h"

struct consent_req {
	struct verb_common common;
	const char *first, *second; /* [TX] [ANSWER] */
};

struct consent_waiting {
	int64_t txn;
	json_t *question; /* see asking.h */
};

struct consent_res {
	struct consent_waiting *v; /* those that wait; after an answer the one that did */
	size_t n;
	const char *answer; /* that was given, or NULL */
};

#endif
