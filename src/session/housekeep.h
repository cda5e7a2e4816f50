/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_HOUSEKEEP_H
#define STET_SESSION_HOUSEKEEP_H

#include "commit/commit.h"

/*
 * What is due when a command has ended but nobody should wait for: the base is noted, the
 * layers are written to the disk, history is trimmed to its budget, the journal's log is
 * folded in. In the background; whoever wants the transaction meanwhile waits for its
 * lock. @t may be NULL (nothing to note): then only if the journal says that it is due.
 * Of few @changes the base is noted before we return: then whatever happens to the host from
 * now on is told from what was; of more, what has changed until it was noted is in doubt. Failing
 * is no error: all of it can be done later or never.
 */
enum { HOUSEKEEP_FEW = 100 };
void housekeep(struct home *h, struct txn *t, uint64_t changes);

/*
 * After a commit: notes what it has left on the host, for its undo (host/after_commit.h).
 * Of few and small changes at once, else in the background. Nothing is done if it did nothing.
 */
enum { HOUSEKEEP_SMALL = 1 << 20 };
void housekeep_commit(struct home *h, struct txn *t, const struct commit_result *done);

/* The background's side: `stet --housekeep STATE-DIR TRANSACTION LOCK WHAT SINCE`. */
#define HOUSEKEEP_OPTION "--housekeep"
int housekeep_main(int argc, char **argv);

/*
 * Whoever looks after transaction @id in the background is ended: it is to be given up, and
 * need not wait for what is done for its future. Or its layers are to be changed once more:
 * then housekeep_again() follows, whatever came of that.
 */
void housekeep_stop(struct home *h, int64_t id);
/* Nothing is done for one that is not locked by us, or not pending. */
void housekeep_again(struct home *h, struct txn *t);

#endif
