/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_FORK_H
#define STET_VERBS_FORK_H

#include "session/sandbox.h"
#include "verbs/run.h"

struct fork_req {
	struct verb_common common;
	const char *txn, *at, *name;
	char **argv; /* NULL: nothing is run */
};

struct fork_res {
	struct run_res run;
	int64_t from, at; /* transaction and checkpoint */
	bool ran;
	struct run_req rq; /* what the run was asked for, for the printer */
};

/*
 * A sandbox whose layers hold what @t held at checkpoint @at (NULL: now). sandbox_close() is
 * due if it returns 0.
 */
int fork_open(struct op_ctx *ctx, struct home *h, struct txn *t, const char *at,
	      const char *name, char *const *argv, struct sandbox *sb, int64_t *seq,
	      struct err *e);

#endif
