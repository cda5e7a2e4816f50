/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_ROLLBACK_H
#define STET_REVIEW_ROLLBACK_H

#include "call/facts.h"
#include "call/verb.h"
#include "commit/commit.h"
#include "diff/change.h"
#include "timeline/timeline.h"

struct rollback_req {
	struct verb_common common;
	const char *txn;
	bool dry_run;
	const char *to;
	bool kill;
	char **ours, **theirs;
};

struct rollback_res {
	struct txn_facts txn;
	bool dry_run;
	struct change_totals totals; /* of a dry run, or of --to: counting takes time */
	int64_t to;		     /* -1: the whole transaction was thrown away */
	struct timeline_gone gone;
	int64_t paused_us; /* of --to, if the transaction runs */
	/* Of one that worked in place (inplace/inplace.h): */
	struct path_notes conflicts;
	uint64_t kept;
};

#endif
