/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_JOURNAL_OP_ROWS_H
#define STET_JOURNAL_OP_ROWS_H

#include "journal/journal.h"

int journal_verify(struct journal *j, journal_complain *fn, void *arg, struct err *e);

/*
 * Records the operation and moves its transaction from r->before to @moving, in one. A COMMIT or
 * ROLLBACK is new: what was undone before it cannot be redone from then on.
 */
int journal_op_add(struct journal *j, struct op_record *r, enum txn_state moving,
		   enum journal_sync s, struct err *e);

/*
 * Moves the operation from r->state to @to and its transaction to @txn_to, in one; sets
 * r->state. An UNDO that is done marks its target undone, a REDO marks it not undone (unless it is
 * of a part), and the newest UNDO of the transaction that was not taken back as redone.
 */
int journal_op_move(struct journal *j, struct op_record *r, enum op_state to,
		    enum txn_state txn_to, int64_t now_ns, enum journal_sync s,
		    struct err *e);

/* Is there anything that was undone and could be redone? */
int journal_op_undone(struct journal *j, int64_t txn, bool *any, struct err *e);

/*
 * Before the data of a transaction changes: undone operations cannot be redone any more.
 * Durable when it returns; nothing is written if there is none.
 */
int journal_op_stale(struct journal *j, int64_t txn, struct err *e);

/* The first transaction after @after (a number) that is COMMITTING or UNDOING; 0: none. */
int journal_txn_unfinished(struct journal *j, int64_t after, int64_t *id, struct err *e);

/*
 * The first atomic transaction after @after without a recorded decision; 0: none. It may be
 * running: its lock tells.
 */
int journal_txn_undecided(struct journal *j, int64_t after, int64_t *id, struct err *e);

int journal_op_get(struct journal *j, int64_t id, struct op_record *r, struct err *e);

int journal_op_each(struct journal *j, int64_t txn, journal_op_fn *fn, void *arg,
		    struct err *e);

#endif
