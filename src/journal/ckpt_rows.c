/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/ckpt_rows.h"
#include "journal/db.h"
#include "journal/txn_rows.h"

static int add(struct journal *j, int64_t txn, const struct ckpt_record *r, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_CKPT_ADD, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, txn);
	sqlite3_bind_int64(st, 2, r->seq);
	sqlite3_bind_int64(st, 3, r->time_ns);
	db_bind_text(st, 4, r->cause);
	sqlite3_bind_int64(st, 5, r->target);
	sqlite3_bind_int(st, 6, r->named);
	db_bind_bytes(st, 7, r->command);
	db_bind_bytes(st, 8, r->note);
	sqlite3_bind_int64(st, 9, (int64_t)r->added);
	sqlite3_bind_int64(st, 10, (int64_t)r->modified);
	sqlite3_bind_int64(st, 11, (int64_t)r->deleted);
	sqlite3_bind_int64(st, 12, (int64_t)r->bytes);
	rc = db_step(st);
	sqlite3_clear_bindings(st);
	return rc == SQLITE_OK ? 0 : db_error(j, rc, "record the checkpoint", e);
}

/* One statement with one or two numbers. */
static int run(struct journal *j, enum db_sql id, int64_t a, int64_t b, bool two,
	       const char *what, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, id, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, a);
	if (two)
		sqlite3_bind_int64(st, 2, b);
	rc = db_step(st);
	return rc == SQLITE_OK ? 0 : db_error(j, rc, what, e);
}

int journal_ckpt_add(struct journal *j, int64_t txn, const struct ckpt_record *r,
		     enum journal_sync s, struct err *e)
{
	if (db_begin(j, s, e))
		return -1;
	if (add(j, txn, r, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

int journal_ckpt_conclude(struct journal *j, int64_t txn, const struct ckpt_record *r,
			  struct err *e)
{
	if (db_begin(j, JOURNAL_LAZY, e))
		return -1;
	if (add(j, txn, r, e) ||
	    run(j, SQL_CHANGING_END, txn, 0, false, "record the checkpoint", e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

static int write_one(struct journal *j, enum db_sql id, int64_t a, int64_t b, bool two,
		     const char *what, struct err *e)
{
	if (db_begin(j, JOURNAL_LAZY, e))
		return -1;
	if (run(j, id, a, b, two, what, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

int journal_ckpt_replace(struct journal *j, int64_t txn, const struct ckpt_record *r,
			 struct err *e)
{
	if (db_begin(j, JOURNAL_LAZY, e))
		return -1;
	if (run(j, SQL_CKPT_DROP, txn, r->seq, true, "drop the checkpoint", e) ||
	    add(j, txn, r, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

int journal_ckpt_thin(struct journal *j, int64_t txn, int64_t seq,
		      const struct ckpt_record *next, struct err *e)
{
	if (db_begin(j, JOURNAL_LAZY, e))
		return -1;
	if (run(j, SQL_CKPT_DROP, txn, seq, true, "drop the checkpoint", e) ||
	    run(j, SQL_CKPT_DROP, txn, next->seq, true, "drop the checkpoint", e) ||
	    add(j, txn, next, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

int journal_changing_set(struct journal *j, int64_t txn, int64_t back_to, struct err *e)
{
	return write_one(j, SQL_CHANGING_SET, txn, back_to, true, "record the change", e);
}

int journal_changing_end(struct journal *j, int64_t txn, struct err *e)
{
	return write_one(j, SQL_CHANGING_END, txn, 0, false, "record the change", e);
}

int journal_changing_next(struct journal *j, int64_t after, int64_t *txn,
			  int64_t *back_to, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_CHANGING_NEXT, e);
	int rc;

	*txn = 0;
	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, after);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*txn = sqlite3_column_int64(st, 0);
		*back_to = sqlite3_column_int64(st, 1);
		rc = SQLITE_DONE;
	}
	sqlite3_reset(st);
	return rc == SQLITE_DONE ? 0 : db_error(j, rc, "read the journal", e);
}

static bool read_row(sqlite3_stmt *st, struct ckpt_record *r)
{
	int64_t n[4], named = 0;

	*r = (struct ckpt_record){ 0 };
	for (int i = 0; i < 4; i++)
		if (!db_get_number(st, 7 + i, 0, INT64_MAX, &n[i]))
			return false;
	if (!db_get_number(st, 0, 1, INT64_MAX, &r->seq) ||
	    !db_get_number(st, 1, INT64_MIN, INT64_MAX, &r->time_ns) ||
	    !db_get_string(st, 2, true, &r->cause) ||
	    !db_get_number(st, 3, -1, INT64_MAX, &r->target) ||
	    !db_get_number(st, 4, 0, 1, &named) ||
	    !db_get_string(st, 5, false, &r->command) ||
	    !db_get_string(st, 6, false, &r->note)) {
		ckpt_record_free(r);
		return false;
	}
	r->named = named;
	r->added = (uint64_t)n[0];
	r->modified = (uint64_t)n[1];
	r->deleted = (uint64_t)n[2];
	r->bytes = (uint64_t)n[3];
	return true;
}

int journal_ckpt_all(struct journal *j, int64_t txn, struct ckpt_records *out,
		     struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_CKPT_OF, e);
	int rc = SQLITE_ROW;
	bool bad = false;

	*out = (struct ckpt_records){ 0 };
	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, txn);
	while (!bad && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		if ((out->n & (out->n - 1)) == 0)
			out->v = xrealloc(out->v,
					  (out->n ? 2 * out->n : 8) * sizeof(*out->v));
		bad = !read_row(st, &out->v[out->n]);
		out->n += !bad;
	}
	sqlite3_reset(st);
	if (!bad && rc == SQLITE_DONE)
		return 0;
	ckpt_records_free(out);
	return bad ? db_corrupt(j, "a checkpoint cannot be read", e)
		   : db_error(j, rc, "read the journal", e);
}
