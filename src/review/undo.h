/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_UNDO_H
#define STET_REVIEW_UNDO_H

#include "call/facts.h"
#include "call/verb.h"
#include "commit/commit.h"

/* Both verbs; redo takes no paths. */
struct undo_req {
	struct verb_common common;
	const char *txn;
	char **paths, **ours, **theirs;
	bool dry_run;
};

struct undo_res {
	struct txn_facts txn;
	struct commit_result done;
	enum op_kind kind; /* what was taken back, or done again */
	bool some;	   /* only the paths asked for */
	bool dry_run;	   /* nothing was done; done.changes says how much it would be */
};

#endif
