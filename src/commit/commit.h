/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_COMMIT_H
#define STET_COMMIT_COMMIT_H

#include "plan/plan.h"
#include "txn/notes.h"
#include "txn/txn.h"

/*
 * Commit, undo, redo, recovery. The invariants that they keep are numbers 5 to 7 of txn/txn.h.
 *
 * A commit is these steps, and a crash after any of them leaves the old tree or the new tree:
 *
 *	draft_make()       the walk over the layers becomes a change list; conflicts and risks
 *	                   are found, and nothing was changed if there are any
 *	apply_stage()      marks of overlayfs are taken off, attributes put right, in the layer
 *	operate_sync_staged()
 *	txn_move()         the row: from here recovery goes forward
 *	apply_forward()    every step; a conflict turns round: apply_backward()
 *	apply_verify()     has anybody written to what was taken away?
 *	txn_move()         the row: done
 */

typedef void commit_progress(void *arg, uint64_t done, uint64_t total);

struct commit_wish {
	/* Absolute paths (with what is below them) or glob patterns, as chosen.h has them;
	 * NULL: everything. */
	const char *const *paths;
	/* Conflicting paths decided by the user; same form; NULL: none. A path that is in
	 * both alike (chosen_side()): ERR_USAGE. */
	const char *const *ours, *const *theirs;
	bool merge;	   /* merge text where both sides changed it */
	bool accept_risky; /* what deserves a look has had it */
	bool dry_run;
	const char *message; /* or NULL */
	/*
	 * Judges a change (@target: of a link, or NULL): NULL, or words that live until the
	 * next call. *deny: the change is not committed, whatever is accepted. The function
	 * itself may be NULL.
	 */
	const char *(*judge)(void *arg, const struct change *c, const char *target,
			     bool *deny);
	void *judge_arg;
	commit_progress *progress;
	void *progress_arg;
};

/* The words for a path that the command could not change (--read-only). */
#define TXN_WAS_CLOSED "was read-only for the command"

struct commit_result {
	int64_t op; /* 0: nothing was done */
	uint64_t changes, added, modified, deleted, bytes;
	uint64_t merged;
	bool left; /* something of the transaction is still pending */
	bool part; /* undo, redo: of some paths only */
	struct path_notes conflicts, risks;
	bool mergeable;		  /* among the conflicts there is a text */
	uint64_t hidden;	  /* conflicts with what the command could not see */
	uint64_t closed;	  /* among those denied: what was read-only */
	struct path_notes denied; /* by wish.judge, or because it was read-only */
};
void commit_result_free(struct commit_result *r);

/*
 * PENDING -> COMMITTED (or PENDING, if paths were chosen and others are left).
 * ERR_CONFLICT with r->conflicts, ERR_DENIED with r->denied or r->risks: nothing was changed.
 */
int txn_commit(struct home *h, struct txn *t, const struct commit_wish *w,
	       struct commit_result *r, struct err *e);

/*
 * Calls @fn for each path that an operation has changed, chosen as in txn_undo() or, with @redo,
 * txn_redo(); a directory that was moved whole is one. Ends early if it does not return 0.
 */
typedef int path_fn(void *arg, const char *path, struct err *e);

/* Journal against store against host: calls @fn for everything that is not as it should be. */
typedef void check_fn(void *arg, const char *what);

#endif
