/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_HOUSEKEEP_H
#define STET_SESSION_HOUSEKEEP_H

#include "commit/commit.h"

/*
 * Work that is due when a command has ended and that no user should wait for: the base is
 * noted, the layers are written to the disk, the history is trimmed to its budget, the log of
 * the journal is folded in. It is done in the background; a process that wants the transaction
 * meanwhile waits for its lock. @t may be NULL (nothing to note): then only if the journal
 * says that it is due. With few @changes the base is noted before this returns, so that later
 * changes of the host are told from earlier ones; with more, changes until the base is noted
 * are in doubt. A failure is no error: all of it can be done later or never.
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
 * Ends the background process of transaction @id: the transaction is given up, and need not
 * wait for work on its future; or its layers are changed once more, and then housekeep_again()
 * follows in any case.
 */
void housekeep_stop(struct home *h, int64_t id);
/* Nothing is done for one that is not locked by us, or not pending. */
void housekeep_again(struct home *h, struct txn *t);

#endif
