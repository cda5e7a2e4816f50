/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_JOURNAL_DB_H
#define STET_JOURNAL_DB_H

#include <sqlite3.h>

#include "journal/journal.h"

/* The journal's inside: connection, statements, errors. Not for other rooms. */

enum db_sql {
	SQL_BEGIN_READ,
	SQL_BEGIN_WRITE,
	SQL_COMMIT,
	SQL_MARK,
	SQL_TXN_ADD,
	SQL_TXN_MOVE,
	SQL_TXN_END,
	SQL_TXN_DIR,
	SQL_TXN_STATE,
	SQL_TXN_GET,
	SQL_TXN_BY_NAME,
	SQL_TXN_BEFORE,
	SQL_TXN_KEPT_BEFORE,
	SQL_TXN_GLANCE,
	SQL_TXN_UNFINISHED,
	SQL_TXN_UNDECIDED,
	SQL_LAYER_ADD,
	SQL_LAYER_DROP,
	SQL_LAYER_OF,
	SQL_EFFECT_ADD,
	SQL_EFFECT_OF,
	SQL_VERIFY,
	SQL_OP_ADD,
	SQL_OP_MOVE,
	SQL_OP_MARK,
	SQL_OP_REDONE,
	SQL_OP_STALE,
	SQL_OP_UNDONE,
	SQL_OP_GET,
	SQL_OP_BEFORE,
	SQL_CKPT_ADD,
	SQL_CKPT_DROP,
	SQL_CKPT_OF,
	SQL_CHANGING_SET,
	SQL_CHANGING_END,
	SQL_CHANGING_NEXT,
	SQL_COUNT
};

struct journal {
	sqlite3 *db;
	char *path;		     /* of journal.db */
	sqlite3_stmt *st[SQL_COUNT]; /* prepared at first use */
	enum journal_sync sync;	     /* what the connection is set to */
	int frames;		     /* pages in the log after our last write, 0: none */
	bool settled;		     /* see journal_settle() */
	int64_t busy_since; /* of the wait that is under way, CLOCK_MONOTONIC ns */
};

/* Sets *e from SQLite's result @rc; @what completes "cannot …". Returns -1. */
int db_error(struct journal *j, int rc, const char *what, struct err *e);

/* ERR_CORRUPT with the way out as a hint. */
int db_corrupt(struct journal *j, const char *why, struct err *e);

/* The statement, reset and without bindings; NULL with *e set. Owned by @j. */
sqlite3_stmt *db_stmt(struct journal *j, enum db_sql id, struct err *e);

/* Runs a statement that yields no rows, and resets it. Returns SQLite's code. */
int db_step(sqlite3_stmt *st);

/*
 * A write transaction: db_begin() waits for its turn, db_commit() makes it as durable as
 * was asked for at the beginning. After a failure of either, or after db_rollback(),
 * nothing of it has happened.
 */
int db_begin(struct journal *j, enum journal_sync s, struct err *e);
int db_commit(struct journal *j, struct err *e);
void db_rollback(struct journal *j);

/* Brings the schema from format @from to the present one. Returns SQLite's code. */
int db_migrate(sqlite3 *db, int from);

#endif
