/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_COMMIT_H
#define STET_VERBS_COMMIT_H

#include "commit/commit.h"
#include "diff/change.h"
#include "session/verb.h"

struct commit_req {
	struct verb_common common;
	const char *txn;
	char **paths, **ours, **theirs;
	const char *message, *at;
	bool merge, accept_risky, dry_run;
};

struct commit_res {
	struct txn_record rec;
	bool kept; /* worked in place: it is the host's already, and nothing else was to do */
	struct commit_result done;
	bool dry_run;
	struct change_totals left; /* pending still, if done.left */
};

/*
 * A first operand that names no transaction is taken for a path. The result is filled in
 * on failure, too: ERR_CONFLICT and ERR_DENIED come with their paths, and nothing
 * was changed.
 */
int op_commit(struct op_ctx *ctx, const void *req, void *res, struct err *e);

/* What a commit did, as the totals of a summary. */
struct change_totals commit_totals(const struct commit_result *r);

/* Sets "conflicts" and "risks", those of them that there are. */
void commit_explain(const struct commit_result *r, json_t *o);

#endif
