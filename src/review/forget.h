/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_FORGET_H
#define STET_REVIEW_FORGET_H

#include "call/verb.h"
#include "txn/budget.h"

struct forget_req {
	struct verb_common common;
	int64_t keep_last, keep_within;
	uint64_t max_size;
	bool dry_run;
	char **txns;
};

struct forget_res {
	bool dry_run;
	struct budget_result done;
};

#endif
