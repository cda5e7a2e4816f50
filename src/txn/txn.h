/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_TXN_H
#define STET_TXN_TXN_H

#include <stdbool.h>

#include "audit/audit.h"
#include "base/err.h"
#include "diff/change.h"
#include "journal/journal.h"
#include "snap/view.h"

/*
 * Transactions: their data, their states, their end. No function of this room knows of processes.
 *
 * Calling sequence of a run:
 *
 *	txn_prepare()      directories and lock; no journal is needed yet
 *	timeline_record()  the moment of the beginning, checkpoint 0, the row: from here it exists
 *	... the command runs; for another command in the same layers: txn_again() ...
 *	txn_end()          it is pending; or txn_discard(): nothing was changed
 *	txn_close()        gives the lock up
 *
 * and between txn_prepare() and the row txn_abandon() takes everything back. Later, by any process:
 *
 *	txn_find()         the record, no lock
 *	txn_pending()      the lock, and that it can be decided about
 *	txn_commit(), txn_rollback(), or txn_resume() to run something in it again
 *	txn_undo(), txn_redo()
 *	data_let_go()      the data goes, the row stays
 *
 * Every function that fails leaves the transaction in the state that it had, unless its contract
 * says otherwise. States and their moves: txn/move.h.
 *
 * Invariants. txn_check() looks at those marked with *; test builds do so at the beginning and at
 * the end of every function above that takes the lock.
 *
 *  1. The host tree is unchanged in every state that exists before a commit.
 *  2.* A process that works on a transaction holds the flock on its directory. An ACTIVE
 *     transaction whose lock is free was interrupted.
 *  3.* A transaction that is not PRUNED has its directory and every layer directory.
 *  4. Data in a store that belongs to no journal row is garbage (prune removes it).
 *  5.* COMMITTING and UNDOING are entered only when the complete change list and the data are
 *     durable. They have exactly one operation under way, all other states have none. From there
 *     recovery goes forward, or, after a conflict, back.
 *  6.* A change list is never edited once it is finished.
 *  7. After a commit the transaction holds what it replaced: undo is the same steps, backwards
 *     (txn_verify() looks).
 */

/* The user's state directory, journal and audit; opened once in a command. */
struct home {
	char *dir; /* $STET_STATE_DIR, $XDG_STATE_HOME/stet, ~/.local/state/stet */
	struct journal *journal;
	struct audit *audit; /* home_books() opens it */
};

struct txn {
	struct txn_record rec;
	int lock;	 /* the flock, or -1 */
	int guard;	 /* between txn_prepare() and txn_record(); else -1 */
	int64_t came_ns; /* when txn_prepare() was called, by the fine clock */
	bool exact;	 /* begin_ns is from exact_time(): txn_start() need not wait */
};

/* What a person is told about a state; of ACTIVE the lock decides. */
enum txn_look {
	TXN_RUNNING,
	TXN_INTERRUPTED, /* the process that ran it has died */
	TXN_PENDING,
	TXN_GONE,    /* rolled back */
	TXN_EMPTY,   /* pruned */
	TXN_KEPT,    /* committed */
	TXN_HALFWAY, /* a commit or undo has not ended; recovery goes on with it */
	TXN_LOOKS
};
enum txn_look txn_look(const struct txn_record *r);

struct prune_result {
	uint64_t transactions, orphans; /* removed */
	uint64_t bytes;			/* given back */
};

#endif
