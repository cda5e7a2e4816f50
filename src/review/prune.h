/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_PRUNE_H
#define STET_REVIEW_PRUNE_H

#include "call/verb.h"

struct prune_req {
	struct verb_common common;
	const char *txn;
	bool dry_run;
};

struct prune_res {
	bool dry_run;
	struct prune_result done;
};

#endif
