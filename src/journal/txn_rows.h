/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_JOURNAL_TXN_ROWS_H
#define STET_JOURNAL_TXN_ROWS_H

#include "journal/db.h"
#include "journal/journal.h"

/* Parameters: strings live until the statement has run; NULL becomes NULL. */
void db_bind_bytes(sqlite3_stmt *st, int i, const char *s);
void db_bind_text(sqlite3_stmt *st, int i, const char *s);

/* Read columns. False (-1): the column has a value that we never wrote. */
bool db_get_string(sqlite3_stmt *st, int i, bool needed, char **out);
bool db_get_number(sqlite3_stmt *st, int i, int64_t min, int64_t max, int64_t *out);
int db_get_word(sqlite3_stmt *st, int i, const char *const *names, size_t n);

/* Adds the row with its layers and effects, atomically; sets r->id. ERR_USAGE if the
 * name is taken. */
int journal_txn_add(struct journal *j, struct txn_record *r, enum journal_sync s,
		    struct err *e);

/* Compare-and-set of the state; ERR_STATE if it is not @from any more. */
int journal_txn_move(struct journal *j, int64_t id, enum txn_state from,
		     enum txn_state to, enum journal_sync s, struct err *e);

int journal_txn_move_all(struct journal *j, struct txn_move *v, size_t n,
			 enum txn_state to, enum journal_sync s, struct err *e);

/* How a run ended. */
struct txn_outcome {
	int exit_status;
	const char *reason;
	int64_t end_ns;
};

/* Moves the transaction m->id from m->from to @to, as journal_txn_move(), with its outcome. */
int journal_txn_end(struct journal *j, const struct txn_move *m, enum txn_state to,
		    const struct txn_outcome *o, enum journal_sync s, struct err *e);

/* Replaces layers and directory (a transaction is recorded before its layers exist). */
int journal_txn_set_layers(struct journal *j, const struct txn_record *r,
			   enum journal_sync s, struct err *e);

/* Adds an effect to a recorded transaction, and to @r. */
int journal_txn_add_effect(struct journal *j, struct txn_record *r, const char *kind,
			   const char *what, enum journal_sync s, struct err *e);

/* Fills in *r (free it). ERR_USAGE if there is no such transaction. */
int journal_txn_get(struct journal *j, int64_t id, struct txn_record *r, struct err *e);

/* Finds a transaction by its --name among those that are not pruned. */
int journal_txn_by_name(struct journal *j, const char *name, struct txn_record *r,
			struct err *e);

int journal_txn_each(struct journal *j, enum journal_range which, journal_txn_fn *fn,
		     void *arg, struct err *e);

/*
 * journal_txn_each() of all that are kept, with only id, state and workspace filled in: much
 * faster in a long history.
 */
int journal_txn_glance(struct journal *j, journal_txn_fn *fn, void *arg, struct err *e);

#endif
