/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "journal/db.h"
#include "journal/txn_rows.h"

/* Rows read in one go by journal_txn_each(): enough for most journals, bounded for all. */
#define BATCH 64

void db_bind_bytes(sqlite3_stmt *st, int i, const char *s)
{
	if (s)
		sqlite3_bind_blob64(st, i, s, strlen(s), SQLITE_STATIC);
	else
		sqlite3_bind_null(st, i);
}

void db_bind_text(sqlite3_stmt *st, int i, const char *s)
{
	sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC);
}

/* Each word with its NUL: a word may hold any other byte. */
static void join_argv(struct buf *out, char *const *argv)
{
	for (; argv && *argv; argv++)
		buf_add(out, *argv, strlen(*argv) + 1);
}

static int no_such(int64_t id, struct err *e)
{
	return err_set(e, ERR_USAGE, "there is no transaction %" PRId64, id);
}

static int add_layers(struct journal *j, int64_t id, const struct txn_record *r,
		      struct err *e)
{
	sqlite3_stmt *st;
	size_t i;
	int rc;

	for (i = 0; i < r->nlayers; i++) {
		st = db_stmt(j, SQL_LAYER_ADD, e);
		if (!st)
			return -1;
		sqlite3_bind_int64(st, 1, id);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)i);
		db_bind_text(st, 3, layer_kind_name(r->layers[i].kind));
		db_bind_bytes(st, 4, r->layers[i].host);
		db_bind_bytes(st, 5, r->layers[i].dir);
		sqlite3_bind_int(st, 6, r->layers[i].lax_owner);
		rc = db_step(st);
		if (rc != SQLITE_OK)
			return db_error(j, rc, "record a layer", e);
	}
	return 0;
}

/* Adds the effects from @i on. */
static int add_effects(struct journal *j, int64_t id, const struct txn_record *r,
		       size_t i, struct err *e)
{
	sqlite3_stmt *st;
	int rc;

	for (; i < r->neffects; i++) {
		st = db_stmt(j, SQL_EFFECT_ADD, e);
		if (!st)
			return -1;
		sqlite3_bind_int64(st, 1, id);
		sqlite3_bind_int64(st, 2, (sqlite3_int64)i);
		db_bind_text(st, 3, r->effects[i].kind);
		db_bind_bytes(st, 4, r->effects[i].what);
		rc = db_step(st);
		if (rc != SQLITE_OK)
			return db_error(j, rc, "record an effect", e);
	}
	return 0;
}

static int name_taken(const char *name, struct err *e)
{
	AUTO_BUF struct buf shown = BUF_INIT;

	text_quote(&shown, name, strlen(name));
	err_set(e, ERR_USAGE, "the name %s is taken by another transaction",
		buf_str(&shown));
	return err_hint(e,
			"choose another one, or free it: stet forget %s; if it is "
			"pending, stet rollback %s first",
			buf_str(&shown), buf_str(&shown));
}

static int add_row(struct journal *j, const struct txn_record *r, int64_t *id,
		   struct err *e)
{
	AUTO_BUF struct buf argv = BUF_INIT, hidden = BUF_INIT;
	sqlite3_stmt *st = db_stmt(j, SQL_TXN_ADD, e);
	int rc;

	if (!st)
		return -1;
	join_argv(&argv, r->argv);
	join_argv(&hidden, r->hidden);
	db_bind_bytes(st, 1, r->name);
	db_bind_text(st, 2, txn_state_name(r->state));
	db_bind_bytes(st, 3, r->workspace);
	db_bind_bytes(st, 4, r->dir);
	sqlite3_bind_blob64(st, 5, buf_str(&argv), argv.len, SQLITE_STATIC);
	db_bind_text(st, 6, r->options);
	sqlite3_bind_int64(st, 7, r->begin_ns);
	sqlite3_bind_int64(st, 8, r->end_ns);
	sqlite3_bind_int(st, 9, r->exit_status);
	db_bind_text(st, 10, r->reason);
	sqlite3_bind_blob64(st, 11, buf_str(&hidden), hidden.len, SQLITE_STATIC);
	sqlite3_bind_int(st, 12, r->atomic);
	db_bind_text(st, 13, r->policy);
	rc = db_step(st);
	sqlite3_clear_bindings(st);
	if (rc == SQLITE_CONSTRAINT_UNIQUE && r->name)
		return name_taken(r->name, e);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "record the transaction", e);
	*id = sqlite3_last_insert_rowid(j->db);
	return 0;
}

int journal_txn_add(struct journal *j, struct txn_record *r, enum journal_sync s,
		    struct err *e)
{
	int64_t id = 0;

	if (db_begin(j, s, e))
		return -1;
	if (add_row(j, r, &id, e) || add_layers(j, id, r, e) ||
	    add_effects(j, id, r, 0, e)) {
		db_rollback(j);
		return -1;
	}
	if (db_commit(j, e))
		return -1;
	r->id = id;
	return 0;
}

/* Why a compare-and-set changed nothing. Returns -1. */
static int explain_move(struct journal *j, int64_t id, enum txn_state from, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_TXN_STATE, e);
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, id);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		err_set(e, ERR_STATE, "transaction %" PRId64 " is %s, not %s any more",
			id, (const char *)sqlite3_column_text(st, 0),
			txn_state_name(from));
	else if (rc == SQLITE_DONE)
		no_such(id, e);
	else
		db_error(j, rc, "read the journal", e);
	sqlite3_reset(st);
	return -1;
}

/* Was it in the state @from? 1, 0, or -1. */
static int move_row(struct journal *j, int64_t id, enum txn_state from, enum txn_state to,
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
	return sqlite3_changes(j->db) > 0;
}

int journal_txn_move(struct journal *j, int64_t id, enum txn_state from,
		     enum txn_state to, enum journal_sync s, struct err *e)
{
	int r;

	if (db_begin(j, s, e))
		return -1;
	r = move_row(j, id, from, to, e);
	if (r == 0)
		explain_move(j, id, from, e);
	if (r > 0)
		return db_commit(j, e);
	db_rollback(j);
	return -1;
}

int journal_txn_move_all(struct journal *j, struct txn_move *v, size_t n,
			 enum txn_state to, enum journal_sync s, struct err *e)
{
	int r = 0;

	if (db_begin(j, s, e))
		return -1;
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = move_row(j, v[i].id, v[i].from, to, e);
		v[i].moved = r > 0;
	}
	if (r >= 0 && db_commit(j, e) == 0)
		return 0;
	db_rollback(j);
	for (size_t i = 0; i < n; i++)
		v[i].moved = false;
	return -1;
}

int journal_txn_end(struct journal *j, const struct txn_move *m, enum txn_state to,
		    const struct txn_outcome *o, enum journal_sync s, struct err *e)
{
	sqlite3_stmt *st;
	int rc;

	if (db_begin(j, s, e))
		return -1;
	st = db_stmt(j, SQL_TXN_END, e);
	if (!st)
		goto undo;
	sqlite3_bind_int64(st, 1, m->id);
	db_bind_text(st, 2, txn_state_name(to));
	sqlite3_bind_int(st, 3, o->exit_status);
	db_bind_text(st, 4, o->reason);
	sqlite3_bind_int64(st, 5, o->end_ns);
	db_bind_text(st, 6, txn_state_name(m->from));
	rc = db_step(st);
	sqlite3_clear_bindings(st);
	if (rc != SQLITE_OK) {
		db_error(j, rc, "record the end", e);
		goto undo;
	}
	if (sqlite3_changes(j->db) == 0) {
		explain_move(j, m->id, m->from, e);
		goto undo;
	}
	return db_commit(j, e);
undo:
	db_rollback(j);
	return -1;
}

static int replace_layers(struct journal *j, const struct txn_record *r, struct err *e)
{
	sqlite3_stmt *dir = db_stmt(j, SQL_TXN_DIR, e);
	sqlite3_stmt *drop = dir ? db_stmt(j, SQL_LAYER_DROP, e) : NULL;
	int rc;

	if (!drop)
		return -1;
	sqlite3_bind_int64(dir, 1, r->id);
	db_bind_bytes(dir, 2, r->dir);
	sqlite3_bind_int64(drop, 1, r->id);
	rc = db_step(dir);
	sqlite3_clear_bindings(dir);
	if (rc == SQLITE_OK && sqlite3_changes(j->db) == 0)
		return no_such(r->id, e);
	if (rc == SQLITE_OK)
		rc = db_step(drop);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "record the layers", e);
	return add_layers(j, r->id, r, e);
}

int journal_txn_set_layers(struct journal *j, const struct txn_record *r,
			   enum journal_sync s, struct err *e)
{
	if (db_begin(j, s, e))
		return -1;
	if (replace_layers(j, r, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

int journal_txn_add_effect(struct journal *j, struct txn_record *r, const char *kind,
			   const char *what, enum journal_sync s, struct err *e)
{
	r->effects = xrealloc(r->effects, (r->neffects + 1) * sizeof(*r->effects));
	r->effects[r->neffects++] = (struct effect_record){ .kind = xstrdup(kind),
							    .what = xstrdup(what) };
	if (db_begin(j, s, e))
		return -1;
	if (add_effects(j, r->id, r, r->neffects - 1, e)) {
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

bool db_get_string(sqlite3_stmt *st, int i, bool needed, char **out)
{
	int type = sqlite3_column_type(st, i);
	const void *data;
	size_t len;

	*out = NULL;
	if (type == SQLITE_NULL)
		return !needed;
	if (type != SQLITE_BLOB && type != SQLITE_TEXT)
		return false;
	data = sqlite3_column_blob(st, i);
	len = (size_t)sqlite3_column_bytes(st, i);
	if (len && (!data || memchr(data, '\0', len)))
		return false;
	*out = xstrndup(len ? data : "", len);
	return true;
}

bool db_get_number(sqlite3_stmt *st, int i, int64_t min, int64_t max, int64_t *out)
{
	if (sqlite3_column_type(st, i) != SQLITE_INTEGER)
		return false;
	*out = sqlite3_column_int64(st, i);
	return *out >= min && *out <= max;
}

int db_get_word(sqlite3_stmt *st, int i, const char *const *names, size_t n)
{
	const char *s = (const char *)sqlite3_column_text(st, i);
	size_t k;

	for (k = 0; s && k < n; k++)
		if (strcmp(s, names[k]) == 0)
			return (int)k;
	return -1;
}

static bool get_argv(sqlite3_stmt *st, int i, char ***out)
{
	const char *data, *p, *end;
	size_t n = 0;

	if (sqlite3_column_type(st, i) != SQLITE_BLOB)
		return false;
	data = sqlite3_column_blob(st, i);
	end = data + sqlite3_column_bytes(st, i);
	if (data != end && (!data || end[-1] != '\0'))
		return false;
	for (p = data; p != end; p += strlen(p) + 1)
		n++;
	*out = xcalloc(n + 1, sizeof(**out));
	for (n = 0, p = data; p != end; p += strlen(p) + 1)
		(*out)[n++] = xstrdup(p);
	return true;
}

static bool get_row(sqlite3_stmt *st, struct txn_record *r)
{
	int64_t exit_status = 0, atomic = 0;
	int state = db_get_word(st, 2, txn_state_names, TXN_STATES);

	if (state < 0)
		return false;
	r->state = (enum txn_state)state;
	if (!db_get_number(st, 0, 1, INT64_MAX, &r->id) ||
	    !db_get_string(st, 1, false, &r->name) ||
	    !db_get_string(st, 3, true, &r->workspace) ||
	    !db_get_string(st, 4, false, &r->dir) || !get_argv(st, 5, &r->argv) ||
	    !db_get_string(st, 6, false, &r->options) ||
	    !db_get_number(st, 7, INT64_MIN, INT64_MAX, &r->begin_ns) ||
	    !db_get_number(st, 8, INT64_MIN, INT64_MAX, &r->end_ns) ||
	    !db_get_number(st, 9, INT_MIN, INT_MAX, &exit_status) ||
	    !db_get_string(st, 10, false, &r->reason) || !get_argv(st, 11, &r->hidden) ||
	    !db_get_number(st, 12, 0, 1, &atomic) ||
	    !db_get_string(st, 13, false, &r->policy))
		return false;
	r->exit_status = (int)exit_status;
	r->atomic = atomic;
	return true;
}

static bool get_layer(sqlite3_stmt *st, struct txn_record *r)
{
	int kind = db_get_word(st, 0, layer_kind_names, LAYER_KINDS);
	struct layer_record *l;
	int64_t lax;

	if (kind < 0 || !db_get_number(st, 3, 0, 1, &lax))
		return false;
	r->layers = xrealloc(r->layers, (r->nlayers + 1) * sizeof(*r->layers));
	l = &r->layers[r->nlayers++];
	*l = (struct layer_record){ .kind = (enum layer_kind)kind, .lax_owner = lax };
	return db_get_string(st, 1, true, &l->host) &&
	       db_get_string(st, 2, true, &l->dir);
}

static bool get_effect(sqlite3_stmt *st, struct txn_record *r)
{
	struct effect_record *f;

	r->effects = xrealloc(r->effects, (r->neffects + 1) * sizeof(*r->effects));
	f = &r->effects[r->neffects++];
	*f = (struct effect_record){ 0 };
	return db_get_string(st, 0, true, &f->kind) &&
	       db_get_string(st, 1, true, &f->what);
}

static int read_list(struct journal *j, enum db_sql id, struct txn_record *r,
		     bool (*get)(sqlite3_stmt *, struct txn_record *), struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, id, e);
	bool good = true;
	int rc;

	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, r->id);
	while (good && (rc = sqlite3_step(st)) == SQLITE_ROW)
		good = get(st, r);
	sqlite3_reset(st);
	if (!good)
		return db_corrupt(j, "a row holds what stet never wrote", e);
	if (rc != SQLITE_DONE)
		return db_error(j, rc, "read the journal", e);
	return 0;
}

/*
 * Reads up to @max records that @st yields, with all that belongs to them. Returns how
 * many, or -1 with none left to free.
 */
static int read_records(struct journal *j, sqlite3_stmt *st, struct txn_record *r,
			int max, struct err *e)
{
	bool failed = false;
	int rc = SQLITE_DONE;
	int n = 0;

	while (n < max && !failed && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		memset(&r[n], 0, sizeof(r[n]));
		if (!get_row(st, &r[n]))
			failed = db_corrupt(j, "a row holds what stet never wrote", e);
		else
			failed = read_list(j, SQL_LAYER_OF, &r[n], get_layer, e) ||
				 read_list(j, SQL_EFFECT_OF, &r[n], get_effect, e);
		n++;
	}
	sqlite3_reset(st);
	if (!failed && rc != SQLITE_DONE && rc != SQLITE_ROW)
		failed = db_error(j, rc, "read the journal", e);
	if (!failed)
		return n;
	while (n > 0)
		txn_record_free(&r[--n]);
	return -1;
}

/* read_records() in one read transaction: others may write between our statements. */
static int read_snapshot(struct journal *j, sqlite3_stmt *st, struct txn_record *r,
			 int max, struct err *e)
{
	sqlite3_stmt *begin = db_stmt(j, SQL_BEGIN_READ, e);
	int rc, n;

	if (!begin)
		return -1;
	rc = db_step(begin);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "read the journal", e);
	n = read_records(j, st, r, max, e);
	db_rollback(j);
	return n;
}

int journal_txn_get(struct journal *j, int64_t id, struct txn_record *r, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_TXN_GET, e);
	int n;

	memset(r, 0, sizeof(*r));
	if (!st)
		return -1;
	sqlite3_bind_int64(st, 1, id);
	n = read_snapshot(j, st, r, 1, e);
	if (n == 0)
		return no_such(id, e);
	return n < 0 ? -1 : 0;
}

int journal_txn_by_name(struct journal *j, const char *name, struct txn_record *r,
			struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_TXN_BY_NAME, e);
	AUTO_BUF struct buf shown = BUF_INIT;
	int n;

	memset(r, 0, sizeof(*r));
	if (!st)
		return -1;
	db_bind_bytes(st, 1, name);
	n = read_snapshot(j, st, r, 1, e);
	sqlite3_clear_bindings(st);
	if (n != 0)
		return n < 0 ? -1 : 0;
	if (!*name)
		buf_adds(&shown, "''");
	text_quote(&shown, name, strlen(name));
	return err_set(e, ERR_USAGE, "there is no transaction named %s", buf_str(&shown));
}

typedef int reader(struct journal *j, sqlite3_stmt *st, struct txn_record *r, int max,
		   struct err *e);

/* Reads up to @max of the next; how many, or -1 with none left to free. */
static int read_glances(struct journal *j, sqlite3_stmt *st, struct txn_record *r,
			int max, struct err *e)
{
	int rc = SQLITE_DONE, n = 0, state;
	bool good = true;

	while (n < max && good && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		r[n] = (struct txn_record){ 0 };
		state = db_get_word(st, 1, txn_state_names, TXN_STATES);
		good = state >= 0 && db_get_number(st, 0, 1, INT64_MAX, &r[n].id) &&
		       db_get_string(st, 2, true, &r[n].workspace);
		r[n++].state = (enum txn_state)state;
	}
	sqlite3_reset(st);
	if (good && (rc == SQLITE_DONE || rc == SQLITE_ROW))
		return n;
	while (n > 0)
		txn_record_free(&r[--n]);
	return good ? db_error(j, rc, "read the journal", e)
		    : db_corrupt(j, "a row holds what stet never wrote", e);
}

/*
 * In batches, each read whole before @fn sees its first: a statement left open across
 * the calls would pin an old snapshot, and a write from within @fn would then fail for
 * good as soon as another process has written.
 */
static int each(struct journal *j, enum db_sql id, reader *read, journal_txn_fn *fn,
		void *arg, struct err *e)
{
	AUTO_FREE struct txn_record *batch = xcalloc(BATCH, sizeof(*batch));
	int64_t before = INT64_MAX;
	sqlite3_stmt *st;
	int i, n, stop;

	do {
		st = db_stmt(j, id, e);
		if (!st)
			return -1;
		sqlite3_bind_int64(st, 1, before);
		sqlite3_bind_int(st, 2, BATCH);
		n = read(j, st, batch, BATCH, e);
		for (i = 0, stop = 0; i < n; i++) {
			before = batch[i].id;
			if (!stop)
				stop = fn(arg, &batch[i], e);
			txn_record_free(&batch[i]);
		}
	} while (n == BATCH && !stop);
	return n < 0 || stop < 0 ? -1 : 0;
}

int journal_txn_each(struct journal *j, enum journal_range which, journal_txn_fn *fn,
		     void *arg, struct err *e)
{
	return each(j, which == JOURNAL_ALL ? SQL_TXN_BEFORE : SQL_TXN_KEPT_BEFORE,
		    read_snapshot, fn, arg, e);
}

int journal_txn_glance(struct journal *j, journal_txn_fn *fn, void *arg, struct err *e)
{
	return each(j, SQL_TXN_GLANCE, read_glances, fn, arg, e);
}
