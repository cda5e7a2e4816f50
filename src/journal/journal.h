/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_JOURNAL_JOURNAL_H
#define STET_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/record.h"

/*
 * What we promised, in SQLite; the only SQL of the project. One journal per user,
 * `journal.db` in the state directory, shared by any number of processes.
 *
 * Durability is asked for per call. JOURNAL_LAZY survives the death of any process but
 * may be lost (whole, never in part) in a power cut: enough for everything that happens
 * before a commit, where losing the record loses a pending transaction and never a host
 * file. JOURNAL_SYNC is on the disk when the call returns, and so is everything
 * written before it.
 */
enum journal_sync { JOURNAL_LAZY, JOURNAL_SYNC };

struct journal;

/*
 * Opens (creating it if need be) the journal in directory @dir. Fails with
 * ERR_CORRUPT if it is not a journal or damaged, ERR_UNSUPPORTED if a newer stet wrote it;
 * in both cases the file is left untouched.
 */
int journal_open(const char *dir, struct journal **out, struct err *e);
void journal_close(struct journal *j); /* NULL is fine */

/*
 * Makes the names of the journal's files durable, once for each connection. The first write that is
 * to be on the disk does it otherwise; where the filesystem was synced just now, it
 * costs next to nothing. On a failure nothing was promised yet.
 */
int journal_settle(struct journal *j, struct err *e);

/* Adds the row with its layers and effects, atomically; sets r->id. ERR_USAGE if the
 * name is taken. */
int journal_txn_add(struct journal *j, struct txn_record *r, enum journal_sync s,
		    struct err *e);

/* Compare-and-set of the state; ERR_STATE if it is not @from any more. */
int journal_txn_move(struct journal *j, int64_t id, enum txn_state from,
		     enum txn_state to, enum journal_sync s, struct err *e);

/*
 * The same for several, in one write: all that are still in the state @from, which is what @moved
 * says afterwards. On a failure none are.
 */
struct txn_move {
	int64_t id;
	enum txn_state from;
	bool moved;
};
int journal_txn_move_all(struct journal *j, struct txn_move *v, size_t n,
			 enum txn_state to, enum journal_sync s, struct err *e);

/* Records the end: state, exit status, reason, end time. */
int journal_txn_end(struct journal *j, int64_t id, enum txn_state to, int exit_status,
		    const char *reason, int64_t end_ns, enum journal_sync s,
		    struct err *e);

/* Replaces layers and directory (a transaction is recorded before its layers exist). */
int journal_txn_set_layers(struct journal *j, const struct txn_record *r,
			   enum journal_sync s, struct err *e);

/* One more effect of what is recorded already; added to @r, too. */
int journal_txn_add_effect(struct journal *j, struct txn_record *r, const char *kind,
			   const char *what, enum journal_sync s, struct err *e);

/* Fills in *r (free it). ERR_USAGE if there is no such transaction. */
int journal_txn_get(struct journal *j, int64_t id, struct txn_record *r, struct err *e);

/* By --name, among unpruned ones. */
int journal_txn_by_name(struct journal *j, const char *name, struct txn_record *r,
			struct err *e);

/*
 * All, or those that are not pruned (most are, in time: whoever has no use for them is
 * spared their number), newest first, each freed after @fn returned. Positive return of @fn
 * stops early.
 */
enum journal_range { JOURNAL_KEPT, JOURNAL_ALL };
typedef int journal_txn_fn(void *arg, struct txn_record *r, struct err *e);
int journal_txn_each(struct journal *j, enum journal_range which, journal_txn_fn *fn,
		     void *arg, struct err *e);

/*
 * The same of all that are kept, but no more of each than id, state and workspace: a small part of
 * the time, where one is looked for in a long history.
 */
int journal_txn_glance(struct journal *j, journal_txn_fn *fn, void *arg, struct err *e);

/*
 * Moves what the log holds into the database file (fsyncs): off the critical path. Being
 * unable to because others read or write at this moment is no failure. _due() says
 * whether the last write of this connection left a log long enough for the next open
 * to notice; nothing is lost but time if that is ignored.
 */
bool journal_checkpoint_due(const struct journal *j);
int journal_checkpoint(struct journal *j, struct err *e);

/* SQLite's own look at the file: calls @fn for everything that is not right. */
typedef void journal_complain(void *arg, const char *what);
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

/*
 * The transaction's data is about to change: what was undone cannot be redone any more. On the
 * disk when it returns; nothing is written if there is nothing of that kind.
 */
int journal_op_stale(struct journal *j, int64_t txn, struct err *e);

/* The first transaction after @after (a number) that is COMMITTING or UNDOING; 0: none. */
int journal_txn_unfinished(struct journal *j, int64_t after, int64_t *id, struct err *e);

/* The first atomic one after @after that no decision was recorded for; 0: none. It may be
 * running: its lock says so. */
int journal_txn_undecided(struct journal *j, int64_t after, int64_t *id, struct err *e);

int journal_op_get(struct journal *j, int64_t id, struct op_record *r, struct err *e);

/* All of transaction @txn (0: of all), newest first; as journal_txn_each. */
typedef int journal_op_fn(void *arg, struct op_record *r, struct err *e);
int journal_op_each(struct journal *j, int64_t txn, journal_op_fn *fn, void *arg,
		    struct err *e);

int journal_ckpt_add(struct journal *j, int64_t txn, const struct ckpt_record *r,
		     enum journal_sync s, struct err *e);
/* The same, and journal_changing_end(), in one. */
int journal_ckpt_conclude(struct journal *j, int64_t txn, const struct ckpt_record *r,
			  struct err *e);
/* Replaces the row of a checkpoint. */
int journal_ckpt_replace(struct journal *j, int64_t txn, const struct ckpt_record *r,
			 struct err *e);
/* Drops one, and replaces the row of the next, whose numbers are others now. */
int journal_ckpt_thin(struct journal *j, int64_t txn, int64_t seq,
		      const struct ckpt_record *next, struct err *e);
int journal_ckpt_all(struct journal *j, int64_t txn, struct ckpt_records *out,
		     struct err *e);

/*
 * A transaction's layers are being changed to another state. If whoever does it dies, they
 * go back to checkpoint @back_to.
 */
int journal_changing_set(struct journal *j, int64_t txn, int64_t back_to, struct err *e);
int journal_changing_end(struct journal *j, int64_t txn, struct err *e);
/* The first after transaction @after; *txn is 0 if there is none. */
int journal_changing_next(struct journal *j, int64_t after, int64_t *txn,
			  int64_t *back_to, struct err *e);

#endif
