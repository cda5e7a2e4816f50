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
 * Makes the names of the journal's files durable, once for each connection. Otherwise the
 * first synced write does that; after a sync of the filesystem it costs next to nothing. On a
 * failure nothing was promised yet.
 */
int journal_settle(struct journal *j, struct err *e);

/*
 * journal_txn_move() of several, in one write: moves those that are still in the state `from`,
 * and sets `moved`. On a failure none are moved.
 */
struct txn_move {
	int64_t id;
	enum txn_state from;
	bool moved;
};

/*
 * Calls @fn for all transactions, or for those that are not pruned (in time most are), newest
 * first; each record is freed after @fn has returned. A positive return of @fn stops early.
 */
enum journal_range { JOURNAL_KEPT, JOURNAL_ALL };
typedef int journal_txn_fn(void *arg, struct txn_record *r, struct err *e);

/*
 * Moves the contents of the log into the database file, with fsync: off the critical path. If
 * others read or write at this moment nothing is moved, which is no failure. _due() says
 * whether the last write of this connection left a log so long that the next open would
 * notice.
 */
bool journal_checkpoint_due(const struct journal *j);
int journal_checkpoint(struct journal *j, struct err *e);

/* Lets SQLite check the file; calls @fn for every fault. */
typedef void journal_complain(void *arg, const char *what);

/*
 * Calls @fn for all operations of transaction @txn (0: of all), newest first; as
 * journal_txn_each().
 */
typedef int journal_op_fn(void *arg, struct op_record *r, struct err *e);

#endif
