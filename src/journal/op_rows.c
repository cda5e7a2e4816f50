/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/db.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"

#define BATCH 64

/* Moves a transaction from one state to another; ERR_STATE if it is not there any more. */
static int move_txn(struct journal *j, int64_t id, enum txn_state from, enum txn_state to,
		    struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_TXN_MOVE, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, id);
	db_bind_text(st, 2, txn_state_name(from));
	db_bind_text(st, 3, txn_state_name(to));
	rc = db_step(st);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "record the new state", e);
	if (sqlite3_changes(j->db) == 0)
		return err_set(e, ERR_STATE, "t%" PRId64 " is not %s any more", id,
			       txn_state_name(from));
	return 0;
}

static int add_op(struct journal *j, struct op_record *r, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_OP_ADD, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, r->txn);
	db_bind_text(st, 2, op_kind_name(r->kind));
	db_bind_text(st, 3, op_state_name(r->state));
	sqlite3_bind_int64(st, 4, r->target);
	db_bind_text(st, 5, r->plan);
	sqlite3_bind_int64(st, 6, (int64_t)r->changes);
	db_bind_text(st, 7, txn_state_name(r->before));
	db_bind_text(st, 8, txn_state_name(r->after));
	sqlite3_bind_int64(st, 9, r->begun_ns);
	sqlite3_bind_int64(st, 10, r->done_ns);
	db_bind_bytes(st, 11, r->message);
	sqlite3_bind_int(st, 12, r->part);
	rc = db_step(st);
	sqlite3_clear_bindings(st);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "record the operation", e);
	r->id = sqlite3_last_insert_rowid(j->db);
	return 0;
}

static int run_on(struct journal *j, enum db_sql which, int64_t txn, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, which, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, txn);
	rc = db_step(st);
	return rc == SQLITE_OK ? 0 : db_error(j, rc, "record the operation", e);
}

static int mark(struct journal *j, int64_t id, enum op_mark undone, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_OP_MARK, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_int(st, 2, (int)undone);
	rc = db_step(st);
	return rc == SQLITE_OK ? 0 : db_error(j, rc, "record the operation", e);
}

static int mark_target(struct journal *j, const struct op_record *r, struct err *e)
{
	if (r->state != OP_DONE || !r->target)
		return 0;
	if (r->kind == OP_REDO && run_on(j, SQL_OP_REDONE, r->txn, e))
		return -1;
	return r->part ? 0
		       : mark(j, r->target,
			      r->kind == OP_UNDO ? OP_TAKEN_BACK : OP_STANDS, e);
}

/* Then what was undone before is final. One that turns round has changed nothing. */
static bool is_new(const struct op_record *r)
{
	return (r->kind == OP_COMMIT || r->kind == OP_ROLLBACK) && r->state == OP_DONE;
}

int journal_op_add(struct journal *j, struct op_record *r, enum txn_state moving,
		   enum journal_sync s, struct err *e)
{
	if (db_begin(j, s, e))
		return -1;
	if ((moving != r->before && move_txn(j, r->txn, r->before, moving, e)) ||
	    (is_new(r) && run_on(j, SQL_OP_STALE, r->txn, e)) || add_op(j, r, e) ||
	    mark_target(j, r, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

static int move_op(struct journal *j, const struct op_record *r, enum op_state to,
		   int64_t now_ns, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_OP_MOVE, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, r->id);
	db_bind_text(st, 2, op_state_name(r->state));
	db_bind_text(st, 3, op_state_name(to));
	sqlite3_bind_int64(st, 4, now_ns);
	rc = db_step(st);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "record the operation", e);
	if (sqlite3_changes(j->db) == 0)
		return err_set(e, ERR_STATE, "operation %" PRId64 " is not %s any more",
			       r->id, op_state_name(r->state));
	return 0;
}

int journal_op_move(struct journal *j, struct op_record *r, enum op_state to,
		    enum txn_state txn_to, int64_t now_ns, enum journal_sync s,
		    struct err *e)
{
	enum txn_state now = r->kind == OP_UNDO ? TXN_UNDOING : TXN_COMMITTING;
	struct op_record moved = *r;

	moved.state = to;
	if (db_begin(j, s, e))
		return -1;
	if (move_op(j, r, to, now_ns, e) ||
	    (txn_to != now && move_txn(j, r->txn, now, txn_to, e)) ||
	    (is_new(&moved) && run_on(j, SQL_OP_STALE, r->txn, e)) ||
	    mark_target(j, &moved, e)) {
		db_rollback(j);
		return -1;
	}
	if (db_commit(j, e))
		return -1;
	r->state = to;
	r->done_ns = now_ns;
	return 0;
}

static int next_txn(struct journal *j, enum db_sql which, int64_t after, int64_t *id,
		    struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, which, e);
	int rc;

	*id = 0;
	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, after);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		*id = sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	return rc == SQLITE_ROW || rc == SQLITE_DONE
		       ? 0
		       : db_error(j, rc, "read the journal", e);
}

int journal_txn_unfinished(struct journal *j, int64_t after, int64_t *id, struct err *e)
{
	return next_txn(j, SQL_TXN_UNFINISHED, after, id, e);
}

int journal_txn_undecided(struct journal *j, int64_t after, int64_t *id, struct err *e)
{
	return next_txn(j, SQL_TXN_UNDECIDED, after, id, e);
}

int journal_op_undone(struct journal *j, int64_t txn, bool *any, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_OP_UNDONE, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, txn);
	rc = sqlite3_step(st);
	sqlite3_reset(st);
	*any = rc == SQLITE_ROW;
	return rc == SQLITE_ROW || rc == SQLITE_DONE
		       ? 0
		       : db_error(j, rc, "read the journal", e);
}

int journal_op_stale(struct journal *j, int64_t txn, struct err *e)
{
	bool any;

	if (journal_op_undone(j, txn, &any, e) < 0)
		return -1;
	if (!any)
		return 0;
	if (db_begin(j, JOURNAL_SYNC, e))
		return -1;
	if (run_on(j, SQL_OP_STALE, txn, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

static bool get_op(sqlite3_stmt *st, struct op_record *r)
{
	int kind = db_get_word(st, 2, op_kind_names, OP_KINDS);
	int state = db_get_word(st, 3, op_state_names, OP_STATES);
	int64_t undone = 0, changes = 0, part = 0, redone = 0;
	int before = -1, after = -1;

	*r = (struct op_record){ 0 };
	for (int s = 0; s < TXN_STATES; s++) {
		const char *b = (const char *)sqlite3_column_text(st, 8);
		const char *a = (const char *)sqlite3_column_text(st, 9);

		if (b && strcmp(b, txn_state_name((enum txn_state)s)) == 0)
			before = s;
		if (a && strcmp(a, txn_state_name((enum txn_state)s)) == 0)
			after = s;
	}
	if (kind < 0 || state < 0 || before < 0 || after < 0 ||
	    !db_get_number(st, 0, 1, INT64_MAX, &r->id) ||
	    !db_get_number(st, 1, 1, INT64_MAX, &r->txn) ||
	    !db_get_number(st, 4, 0, INT64_MAX, &r->target) ||
	    !db_get_number(st, 5, 0, OP_MARKS - 1, &undone) ||
	    !db_get_string(st, 6, false, &r->plan) ||
	    !db_get_number(st, 7, 0, INT64_MAX, &changes) ||
	    !db_get_number(st, 10, INT64_MIN, INT64_MAX, &r->begun_ns) ||
	    !db_get_number(st, 11, INT64_MIN, INT64_MAX, &r->done_ns) ||
	    !db_get_string(st, 12, false, &r->message) ||
	    !db_get_number(st, 13, 0, 1, &part) ||
	    !db_get_number(st, 14, 0, OP_MARKS - 1, &redone))
		return false;
	r->kind = (enum op_kind)kind;
	r->state = (enum op_state)state;
	r->before = (enum txn_state)before;
	r->after = (enum txn_state)after;
	r->undone = (enum op_mark)undone;
	r->part = part;
	r->redone = (enum op_mark)redone;
	r->changes = (uint64_t)changes;
	return true;
}

int journal_op_get(struct journal *j, int64_t id, struct op_record *r, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_OP_GET, e);
	bool good = true;
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, id);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		good = get_op(st, r);
	sqlite3_reset(st);
	if (!good)
		return db_corrupt(j, "a row holds what stet never wrote", e);
	if (rc == SQLITE_DONE)
		return err_set(e, ERR_USAGE, "there is no operation %" PRId64, id);
	return rc == SQLITE_ROW ? 0 : db_error(j, rc, "read the journal", e);
}

/* In batches, for the reason given at journal_txn_each(). */
int journal_op_each(struct journal *j, int64_t txn, journal_op_fn *fn, void *arg,
		    struct err *e)
{
	AUTO_FREE struct op_record *batch = xcalloc(BATCH, sizeof(*batch));
	int64_t before = INT64_MAX;
	int n, rc, stop = 0;

	do {
		sqlite3_stmt *st = db_stmt(j, SQL_OP_BEFORE, e);
		bool good = true;

		if (!st)
			return -1;
		sqlite3_bind_int64(st, 1, before);
		sqlite3_bind_int64(st, 2, txn);
		sqlite3_bind_int(st, 3, BATCH);
		for (n = 0; good && (rc = sqlite3_step(st)) == SQLITE_ROW; n++)
			good = get_op(st, &batch[n]);
		sqlite3_reset(st);
		if (!good || rc != SQLITE_DONE)
			stop = good ? db_error(j, rc, "read the journal", e)
				    : db_corrupt(j, "a row holds what stet never wrote",
						 e);
		for (int i = 0; i < n; i++) {
			before = batch[i].id;
			if (stop == 0)
				stop = fn(arg, &batch[i], e);
			op_record_free(&batch[i]);
		}
	} while (stop == 0 && n == BATCH);
	return stop < 0 ? -1 : 0;
}

int journal_verify(struct journal *j, journal_complain *fn, void *arg, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_VERIFY, e);
	int rc;

	if (!st)
		return -1;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *s = (const char *)sqlite3_column_text(st, 0);

		if (s && strcmp(s, "ok") != 0)
			fn(arg, s);
	}
	sqlite3_reset(st);
	return rc == SQLITE_DONE ? 0 : db_error(j, rc, "check the journal", e);
}
