/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_MOVE_H
#define STET_TXN_MOVE_H

#include "journal/txn_rows.h"
#include "txn/txn.h"

/*
 * The states of a transaction and the moves between them. The table in move.c is the whole truth:
 * txn_move() is the only function that changes a state, and a move that is not in the table is
 * ERR_CORRUPT and changes nothing. Each move is one write of the journal, which compares and sets:
 * if another process was faster it is ERR_STATE.
 *
 *   txn_record()        txn_end()          txn_commit(), txn_redo()            operate()
 *        |                  |                        |                             |
 *        v                  v                        v                             v
 *      ACTIVE ----------> FROZEN -----------------> COMMITTING -------------> COMMITTED
 *       |  ^ \              | ^ ^ ^                     |   ^                   | ^  |
 *       |  |  \ txn_        | | | +---- operate() ------+   |  txn_redo()       | |  |
 *       |  |   \ rollback() | | |  conflict, or a part      +-------------------+ |  |
 *       |  |    \           | | |                                     txn_undo()| |  |
 *       |  +-----|----------+ | +-------- operate() ------ UNDOING <------------+ |  |
 *       |  txn_resume()       |                               |    operate()      |  |
 *       |        |            | txn_undo()                    +-------------------+  |
 *       |        v            |                                 conflict, or a part  |
 *       |     ROLLED_BACK ----+                                                      |
 *       |        |                                                                   |
 *       v        v data_let_go()                                   data_let_go()     v
 *     PRUNED <-----------------------------------------------------------------------+
 *   txn_discard(): nothing was changed
 *
 * A redo of a rollback goes from FROZEN to ROLLED_BACK. What was committed as a part can be undone
 * and redone in FROZEN and in ROLLED_BACK, by way of UNDOING or COMMITTING and back.
 */

/* Is there a move from @from to @to? */
bool txn_may_move(enum txn_state from, enum txn_state to);

struct txn_step {
	enum txn_state to; /* the present state: only the operation moves */
	enum journal_sync sync;
	const struct txn_outcome *outcome; /* NULL: no run has ended */
	/*
	 * The operation that begins with this move (its id is 0 and is assigned), or goes on to
	 * @op_to at @op_ns. NULL: none.
	 */
	struct op_record *op;
	enum op_state op_to;
	int64_t op_ns;
};

/* Moves @t, in the journal and in t->rec. On failure both are what they were. */
int txn_move(struct home *h, struct txn *t, const struct txn_step *s, struct err *e);

/* Moves each of @v to @to that is still in the state it is said to be in, in one write. */
int txn_move_all(struct home *h, struct txn_move *v, size_t n, enum txn_state to,
		 enum journal_sync sync, struct err *e);

#endif
