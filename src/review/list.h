/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_LIST_H
#define STET_REVIEW_LIST_H

#include "call/facts.h"
#include "call/verb.h"

struct list_req {
	struct verb_common common;
	bool all, ids;
};

struct list_res {
	bool ids;
	struct txn_facts *v; /* newest first */
	size_t n, cap;
};

#endif
