/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_COMMIT_H
#define STET_PRINT_COMMIT_H

#include "print/print.h"
#include "review/commit.h"

/*
 * Says on standard error why a verb refused, with the paths that the result names and the commands
 * that go on from there. True if a person at the terminal may have a commit all the same.
 */
typedef bool explain_fn(struct console *c, const void *req, const void *res,
			const struct err *e);
explain_fn explain_commit, explain_rollback, explain_undo, explain_redo;

/* The same for a commit of the transaction @rec; @rq: NULL if the options of a run asked for it. */
bool explain_refusal(struct console *c, const struct txn_record *rec,
		     const struct commit_req *rq, const struct commit_result *r,
		     const struct err *e);

#endif
