/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_COMMIT_H
#define STET_REVIEW_COMMIT_H

#include "call/facts.h"
#include "call/verb.h"
#include "commit/commit.h"
#include "diff/change.h"

struct commit_req {
	struct verb_common common;
	const char *txn;
	char **paths, **ours, **theirs;
	const char *message, *at;
	bool merge, accept_risky, dry_run;
};

struct commit_res {
	struct txn_facts txn;
	bool kept; /* worked in place: it is the host's already, and nothing else was to do */
	struct commit_result done;
	bool dry_run;
	struct change_totals left; /* pending still, if done.left */
};

/* What a commit did, as the totals of a summary. */
struct change_totals commit_totals(const struct commit_result *r);

/* Rows of a result, about a struct commit_result: why a commit was refused. */
extern const struct field refused_fields[];

#endif
