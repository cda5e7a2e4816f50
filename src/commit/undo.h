/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_UNDO_H
#define STET_COMMIT_UNDO_H

#include "commit/commit.h"

/*
 * Takes back an operation of @t: @op, or 0 for the newest that is not undone; of that, what was
 * not taken back before. With w->paths only these, of the newest commit that changed any of
 * them: the transaction stays in its state, unless nothing else is left of its newest
 * commit. ERR_CONFLICT with r->conflicts if the host has changed since.
 */
int txn_undo(struct home *h, struct txn *t, int64_t op, const struct commit_wish *w,
	     struct commit_result *r, struct err *e);

/*
 * Does again what was undone last, be it a whole operation or a part: takes back the newest undo
 * that was not taken back, so that repeated undos and redos are a stack. What was undone before
 * a newer commit or rollback was made, or before the layers were changed in any other way
 * (explore, rollback to a checkpoint, restore), is superseded: it cannot be done again.
 */
int txn_redo(struct home *h, struct txn *t, const struct commit_wish *w,
	     struct commit_result *r, struct err *e);

int txn_op_paths(struct home *h, const struct txn *t, int64_t op, bool redo, path_fn *fn,
		 void *arg, struct err *e);

#endif
