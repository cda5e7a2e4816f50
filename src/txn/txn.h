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
 * Transactions: states, begin, end, rollback, prune. Never sees a process.
 *
 * Invariants, asserted by txn_check():
 *  1. The host tree is unchanged in every state that exists before a commit.
 *  2. Whoever drives an OPEN or ACTIVE transaction holds the flock on its directory; a
 *     transaction in these states whose lock is free was interrupted.
 *  3. A transaction that is not PRUNED has its directory and every layer directory.
 *  4. Data in a store that belongs to no journal row is garbage (prune removes it).
 */

/* The user's state directory and journal; opened once per command. */
struct home {
	char *dir; /* $STET_STATE_DIR, $XDG_STATE_HOME/stet, ~/.local/state/stet */
	struct journal *journal;
	struct audit *audit; /* opened when something is first noted */
};

struct txn {
	struct txn_record rec;
	int lock;	 /* the flock, or -1 */
	int guard;	 /* between txn_prepare() and txn_record(); else -1 */
	int64_t came_ns; /* when it was prepared, by the fine clock */
	bool exact;	 /* its beginning can be told from what was written just before */
};

/* How it looks to a person: a state, or what the lock says about it. */
enum txn_look {
	TXN_RUNNING,
	TXN_INTERRUPTED, /* nobody drives it any more */
	TXN_PENDING,
	TXN_GONE,    /* rolled back */
	TXN_EMPTY,   /* pruned */
	TXN_KEPT,    /* committed */
	TXN_HALFWAY, /* a commit or undo that did not end; recovery goes on with it */
};
enum txn_look txn_look(const struct txn_record *r);

struct prune_result {
	uint64_t transactions, orphans; /* removed */
	uint64_t bytes;			/* given back */
};

#endif
