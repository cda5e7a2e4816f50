/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/text.h"
#include "journal/create.h"
#include "journal/db.h"
#include "journal/schema.h"

/* A hundred runs may begin at once; nobody holds the lock for longer than an fsync. */
#define BUSY_LIMIT_NS (30 * INT64_C(1000000000))
#define BUSY_MAX_US 5000

/*
 * The first process to open the journal reads the whole log, about 2 µs a page. Above
 * DUE it is worth a checkpoint when somebody has time; above CEILING it is done by
 * whoever writes, since nobody had.
 */
#define FRAMES_DUE 64
#define FRAMES_CEILING 1024

#define TXN_COLUMNS                                                          \
	"id, name, state, workspace, dir, argv, options, begin_ns, end_ns, " \
	"exit_status, reason, hidden, atomic, policy FROM txn "

#define OP_COLUMNS                                                             \
	"id, txn, kind, state, target, undone, plan, changes, before, after, " \
	"begun_ns, done_ns, message, part, redone FROM op "

/* An undo that was not taken back, and can be. */
#define OP_REDOABLE "kind = 'undo' AND state = 'done' AND redone = 0"

/* States on the way to the one decision that an atomic transaction has. */
#define NOT_SETTLED "IN ('open', 'active', 'frozen', 'committing') "

static const char *const sql[SQL_COUNT] = {
	[SQL_BEGIN_READ] = "BEGIN",
	[SQL_BEGIN_WRITE] = "BEGIN IMMEDIATE",
	[SQL_COMMIT] = "COMMIT",
	[SQL_MARK] = "UPDATE meta SET value = value + 1 WHERE key = 'checkpoints'",
	[SQL_TXN_ADD] = "INSERT INTO txn(name, state, workspace, dir, argv, options, "
			"begin_ns, end_ns, exit_status, reason, hidden, atomic, policy) "
			"VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
	[SQL_TXN_MOVE] = "UPDATE txn SET state = ?3, atomic = atomic AND ?3 " NOT_SETTLED
			 "WHERE id = ?1 AND state = ?2",
	[SQL_TXN_END] = "UPDATE txn SET state = ?2, exit_status = ?3, reason = ?4, "
			"end_ns = ?5, atomic = atomic AND ?2 " NOT_SETTLED
			"WHERE id = ?1 AND state = ?6",
	[SQL_TXN_DIR] = "UPDATE txn SET dir = ?2 WHERE id = ?1",
	[SQL_TXN_STATE] = "SELECT state FROM txn WHERE id = ?1",
	[SQL_TXN_GET] = "SELECT " TXN_COLUMNS "WHERE id = ?1",
	[SQL_TXN_BY_NAME] = "SELECT " TXN_COLUMNS "WHERE name = ?1 AND name IS NOT NULL "
			    "AND state <> 'pruned'",
	[SQL_TXN_BEFORE] = "SELECT " TXN_COLUMNS
			   "WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
	[SQL_TXN_KEPT_BEFORE] = "SELECT " TXN_COLUMNS
				"WHERE id < ?1 AND state <> 'pruned' "
				"ORDER BY id DESC LIMIT ?2",
	[SQL_TXN_GLANCE] = "SELECT id, state, workspace FROM txn WHERE id < ?1 "
			   "AND state <> 'pruned' ORDER BY id DESC LIMIT ?2",
	[SQL_TXN_UNFINISHED] =
		"SELECT id FROM txn WHERE id > ?1 "
		"AND state IN ('committing', 'undoing') ORDER BY id LIMIT 1",
	[SQL_TXN_UNDECIDED] = "SELECT id FROM txn WHERE id > ?1 AND atomic = 1 "
			      "AND state <> 'committing' ORDER BY id LIMIT 1",
	[SQL_LAYER_ADD] = "INSERT INTO layer VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
	[SQL_LAYER_DROP] = "DELETE FROM layer WHERE txn = ?1",
	[SQL_LAYER_OF] = "SELECT kind, host, dir, lax_owner FROM layer WHERE txn = ?1 "
			 "ORDER BY seq",
	[SQL_EFFECT_ADD] = "INSERT INTO effect VALUES(?1, ?2, ?3, ?4)",
	[SQL_EFFECT_OF] = "SELECT kind, what FROM effect WHERE txn = ?1 ORDER BY seq",
	[SQL_VERIFY] = "PRAGMA integrity_check(20)",
	[SQL_OP_ADD] =
		"INSERT INTO op(txn, kind, state, target, plan, changes, before, after, "
		"begun_ns, done_ns, message, part) "
		"VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
	[SQL_OP_MOVE] =
		"UPDATE op SET state = ?3, done_ns = ?4 WHERE id = ?1 AND state = ?2",
	[SQL_OP_MARK] = "UPDATE op SET undone = ?2 WHERE id = ?1",
	[SQL_OP_REDONE] = "UPDATE op SET redone = 1 WHERE id = (SELECT max(id) FROM op "
			  "WHERE txn = ?1 AND " OP_REDOABLE ")",
	[SQL_OP_STALE] = "UPDATE op SET undone = 2 * (undone > 0), "
			 "redone = CASE WHEN " OP_REDOABLE " THEN 2 ELSE redone END "
			 "WHERE txn = ?1 AND (undone = 1 OR (" OP_REDOABLE "))",
	[SQL_OP_UNDONE] = "SELECT 1 FROM op WHERE txn = ?1 AND (undone = 1 OR "
			  "(" OP_REDOABLE ")) LIMIT 1",
	[SQL_OP_GET] = "SELECT " OP_COLUMNS "WHERE id = ?1",
	[SQL_OP_BEFORE] = "SELECT " OP_COLUMNS "WHERE id < ?1 AND (?2 = 0 OR txn = ?2) "
			  "ORDER BY id DESC LIMIT ?3",
	[SQL_CKPT_ADD] =
		"INSERT INTO checkpoint(txn, seq, time_ns, cause, target, named, "
		"command, note, added, modified, deleted, bytes) "
		"VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
	[SQL_CKPT_DROP] = "DELETE FROM checkpoint WHERE txn = ?1 AND seq = ?2",
	[SQL_CKPT_OF] =
		"SELECT seq, time_ns, cause, target, named, command, note, added, "
		"modified, deleted, bytes FROM checkpoint WHERE txn = ?1 "
		"ORDER BY seq",
	[SQL_CHANGING_SET] = "INSERT OR REPLACE INTO changing VALUES(?1, ?2)",
	[SQL_CHANGING_END] = "DELETE FROM changing WHERE txn = ?1",
	[SQL_CHANGING_NEXT] =
		"SELECT txn, back_to FROM changing WHERE txn > ?1 ORDER BY txn LIMIT 1",
};

int db_corrupt(struct journal *j, const char *why, struct err *e)
{
	AUTO_BUF struct buf from = BUF_INIT, to = BUF_INIT;
	AUTO_FREE char *bad = xasprintf("%s.bad", j->path);

	text_quote(&from, j->path, strlen(j->path));
	text_quote(&to, bad, strlen(bad));
	err_set(e, ERR_CORRUPT, "the journal %s is damaged: %s", buf_str(&from), why);
	err_hint(e, "move it away: mv %s %s", buf_str(&from), buf_str(&to));
	return -1;
}

/* SQLite does not always tell what its write met. */
static bool limited(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur != RLIM_INFINITY;
}

int db_error(struct journal *j, int rc, const char *what, struct err *e)
{
	AUTO_BUF struct buf path = BUF_INIT;
	int sys = j->db ? sqlite3_system_errno(j->db) : 0;

	text_quote(&path, j->path, strlen(j->path));
	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_FORMAT:
	case SQLITE_ERROR: /* our own SQL does not fit what is there */
	case SQLITE_MISMATCH:
		return db_corrupt(j, sqlite3_errmsg(j->db), e);
	case SQLITE_CONSTRAINT:
		return err_set(e, ERR_STATE, "cannot %s: the journal %s refuses it: %s",
			       what, buf_str(&path), sqlite3_errmsg(j->db));
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		err_sys(e, EBUSY, "cannot %s: other processes hold the journal %s", what,
			buf_str(&path));
		err_hint(e, "see who has it open: fuser -v %s", buf_str(&path));
		return -1;
	case SQLITE_NOMEM:
		return err_sys(e, ENOMEM, "cannot %s: journal %s", what, buf_str(&path));
	case SQLITE_FULL:
		err_sys(e, sys ? sys : ENOSPC, "cannot %s: journal %s", what,
			buf_str(&path));
		return err_hint(e,
				"free some space there, or let old data go: stet prune");
	case SQLITE_READONLY:
		return err_sys(e, sys ? sys : EROFS, "cannot %s: journal %s", what,
			       buf_str(&path));
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
	case SQLITE_PERM:
	case SQLITE_AUTH:
	default:
		if (sys == ENOSPC || sys == EDQUOT)
			return db_error(j, SQLITE_FULL, what, e);
		err_sys(e, sys ? sys : EIO, "cannot %s: journal %s (%s)", what,
			buf_str(&path), sqlite3_errstr(rc));
		return limited() ? err_hint(e, "a limit of file sizes is set; lift it: "
					       "ulimit -f unlimited")
				 : -1;
	}
}

sqlite3_stmt *db_stmt(struct journal *j, enum db_sql id, struct err *e)
{
	int rc;

	if (j->st[id]) {
		sqlite3_clear_bindings(j->st[id]);
		return j->st[id];
	}
	rc = sqlite3_prepare_v2(j->db, sql[id], -1, &j->st[id], NULL);
	if (rc != SQLITE_OK) {
		db_error(j, rc, "use the journal", e);
		return NULL;
	}
	return j->st[id];
}

int db_step(sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	sqlite3_reset(st);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/*
 * SQLite syncs the directory behind the first sync of a log that it has opened, whoever has made
 * it. ext4 then commits all that it has under way, and the log has just been written to: as
 * long a wait as the sync itself. Done before, it mostly meets nothing that waits.
 */
static int open_no_directory(const char *path, int *fd)
{
	(void)path;
	(void)fd;
	return SQLITE_CANTOPEN; /* it goes on without */
}

static void sync_directory_ourselves(void)
{
	sqlite3_vfs *v = sqlite3_vfs_find(NULL);

	if (v && v->iVersion >= 3 && v->xSetSystemCall)
		v->xSetSystemCall(v, "openDirectory",
				  (sqlite3_syscall_ptr)open_no_directory);
}

int journal_settle(struct journal *j, struct err *e)
{
	AUTO_FREE char *path = NULL;
	AUTO_CLOSE int dir = -1;

	if (j->settled)
		return 0;
	path = xstrndup(j->path, (size_t)(strrchr(j->path, '/') - j->path) + 1);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* One that may not be read cannot be synced: SQLite would go on, too. */
	if (FAULT_AT("journal.settle") || (dir >= 0 && fsync(dir) < 0))
		return err_sys(e, errno, "cannot write to the journal");
	j->settled = true;
	return 0;
}

static int set_sync(struct journal *j, enum journal_sync s)
{
	int rc;

	if (j->sync == s)
		return SQLITE_OK;
	rc = sqlite3_exec(j->db,
			  s == JOURNAL_SYNC ? "PRAGMA synchronous=FULL"
					    : "PRAGMA synchronous=NORMAL",
			  NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		j->sync = s;
	return rc;
}

int db_begin(struct journal *j, enum journal_sync s, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_BEGIN_WRITE, e);
	int rc;

	if (!st)
		return -1;
	if (FAULT_AT("journal.begin"))
		return err_sys(e, errno, "cannot write to the journal");
	if (s == JOURNAL_SYNC && journal_settle(j, e) < 0)
		return -1;
	rc = set_sync(j, s);
	if (rc == SQLITE_OK)
		rc = db_step(st);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "write to the journal", e);
	return 0;
}

/*
 * Copies the log into the database and starts the log anew. The first write to a new log
 * syncs its header (an old prefix must never be replayed over newer pages): done here,
 * so that no lazy write has to.
 */
static int checkpoint(struct journal *j, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_MARK, e);
	int rc;

	if (!st)
		return -1;
	if (FAULT_AT("journal.checkpoint"))
		return err_sys(e, errno, "cannot tidy the journal");
	if (journal_settle(j, e) < 0)
		return -1;
	rc = set_sync(j, JOURNAL_SYNC);
	if (rc == SQLITE_OK)
		rc = sqlite3_wal_checkpoint_v2(j->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
					       NULL, NULL);
	if (rc == SQLITE_OK)
		rc = db_step(st);
	/* somebody else is at it: then it is being done */
	if ((rc & 0xff) == SQLITE_BUSY)
		rc = SQLITE_OK;
	if (rc != SQLITE_OK)
		return db_error(j, rc, "tidy the journal", e);
	return 0;
}

int db_commit(struct journal *j, struct err *e)
{
	sqlite3_stmt *st = db_stmt(j, SQL_COMMIT, e);
	struct err ignored;
	int rc;

	if (!st) {
		db_rollback(j);
		return -1;
	}
	if (FAULT_AT("journal.commit")) {
		err_sys(e, errno, "cannot write to the journal");
		db_rollback(j);
		return -1;
	}
	rc = FAULT_SKIP("journal.commit") ? SQLITE_OK : db_step(st);
	if (rc != SQLITE_OK) {
		db_error(j, rc, "write to the journal", e);
		db_rollback(j);
		return -1;
	}
	/* A log whose fsync failed may be found whole after a crash: done, and yet not. */
	if (FAULT_AT("journal.committed"))
		return err_sys(e, errno, "cannot write to the journal");
	/* the write stands whatever becomes of this */
	if (j->frames > FRAMES_CEILING)
		checkpoint(j, &ignored);
	return 0;
}

void db_rollback(struct journal *j)
{
	if (!sqlite3_get_autocommit(j->db))
		sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
}

/* Delays that grow from 100 µs: SQLite's own handler begins at 1 ms and goes to 100. */
static int on_busy(void *arg, int count)
{
	struct journal *j = arg;
	useconds_t us = count < 6 ? 100U << count : BUSY_MAX_US;

	if (count == 0)
		j->busy_since = clock_ns(CLOCK_MONOTONIC);
	else if (clock_ns(CLOCK_MONOTONIC) - j->busy_since > BUSY_LIMIT_NS)
		return 0;
	usleep(us);
	return 1;
}

/* Being set, it also replaces SQLite's automatic checkpoint. */
static int on_commit(void *arg, sqlite3 *db, const char *name, int frames)
{
	struct journal *j = arg;

	(void)db;
	(void)name;
	j->frames = frames;
	return SQLITE_OK;
}

static int pragma_int(struct journal *j, const char *text, int *out)
{
	sqlite3_stmt *st;
	int rc;

	rc = sqlite3_prepare_v2(j->db, text, -1, &st, NULL);
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*out = sqlite3_column_int(st, 0);
		rc = SQLITE_OK;
	} else if (rc == SQLITE_DONE) {
		rc = SQLITE_CORRUPT;
	}
	sqlite3_finalize(st);
	return rc;
}

int db_migrate(sqlite3 *db, int from)
{
	AUTO_FREE char *version = xasprintf("PRAGMA application_id=%d;"
					    "PRAGMA user_version=%d",
					    JOURNAL_APPLICATION_ID, JOURNAL_FORMAT);
	int rc = SQLITE_OK;
	int i;

	for (i = from; i < JOURNAL_FORMAT && rc == SQLITE_OK; i++)
		rc = sqlite3_exec(db, journal_steps[i], NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, version, NULL, NULL, NULL);
	return rc;
}

/* Under the write lock, looking again: somebody may have done it while we waited. */
static int upgrade(struct journal *j, struct err *e)
{
	int version = 0;
	int rc;

	if (db_begin(j, JOURNAL_SYNC, e))
		return -1;
	rc = pragma_int(j, "PRAGMA user_version", &version);
	if (rc == SQLITE_OK)
		rc = db_migrate(j->db, version);
	if (rc != SQLITE_OK) {
		db_error(j, rc, "bring the journal to the present format", e);
		db_rollback(j);
		return -1;
	}
	return db_commit(j, e);
}

static int check_format(struct journal *j, struct err *e)
{
	AUTO_BUF struct buf path = BUF_INIT;
	int id = 0, version = 0;
	int rc;

	rc = pragma_int(j, "PRAGMA application_id", &id);
	if (rc == SQLITE_OK)
		rc = pragma_int(j, "PRAGMA user_version", &version);
	if (rc != SQLITE_OK)
		return db_error(j, rc, "read the journal", e);
	if (id != JOURNAL_APPLICATION_ID)
		return db_corrupt(j, "it is not a journal of stet", e);
	if (version < 1)
		return db_corrupt(j, "it has no format number", e);
	if (version <= JOURNAL_FORMAT)
		return version < JOURNAL_FORMAT ? upgrade(j, e) : 0;
	text_quote(&path, j->path, strlen(j->path));
	err_set(e, ERR_UNSUPPORTED,
		"the journal %s was written by a newer stet (format %d, this one knows %d)",
		buf_str(&path), version, JOURNAL_FORMAT);
	return err_hint(e, "install that version again, or use another state directory: "
			   "STET_STATE_DIR=...");
}

static void configure(struct journal *j)
{
	int on = 1;

	sqlite3_extended_result_codes(j->db, 1);
	sqlite3_busy_handler(j->db, on_busy, j);
	sqlite3_wal_hook(j->db, on_commit, j);
	sqlite3_db_config(j->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	sqlite3_db_config(j->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(j->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	/* neither fsync nor unlink when the last one leaves */
	sqlite3_db_config(j->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	sqlite3_file_control(j->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
}

static int connect_once(struct journal *j)
{
	return sqlite3_open_v2(j->path, &j->db,
			       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
				       SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
			       NULL);
}

static int connect_db(struct journal *j, struct err *e)
{
	int rc = connect_once(j);

	/*
	 * SQLite tries again read-only when it cannot open for writing, and succeeds if
	 * the journal was made between the two: then the next try is the true answer.
	 */
	if (rc == SQLITE_OK && sqlite3_db_readonly(j->db, "main") == 1) {
		sqlite3_close(j->db);
		rc = connect_once(j);
	}
	if (rc == SQLITE_OK)
		return 0;
	if (rc == SQLITE_CANTOPEN_SYMLINK)
		db_corrupt(j, "it is a symbolic link", e);
	else
		db_error(j, rc, "open the journal", e);
	sqlite3_close(j->db);
	j->db = NULL;
	return -1;
}

/*
 * SQLite refuses a symbolic link anywhere in the path, and the directory may well be
 * behind one (a home on another disk): only the last component is ours to refuse.
 */
static char *journal_path(const char *dir, struct err *e)
{
	AUTO_BUF struct buf shown = BUF_INIT;
	char real[PATH_MAX];

	if (realpath(dir, real))
		return xasprintf("%s/journal.db", strcmp(real, "/") == 0 ? "" : real);
	text_quote(&shown, dir, strlen(dir));
	err_sys(e, errno, "cannot open the journal in %s", buf_str(&shown));
	return NULL;
}

int journal_open(const char *dir, struct journal **out, struct err *e)
{
	struct journal *j;
	bool created = false;

	*out = NULL;
	/* before the first use of SQLite; later calls are refused and change nothing */
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	/* no pages set aside ahead: we touch a dozen, and each fault costs */
	sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
	sync_directory_ourselves();
	j = xcalloc(1, sizeof(*j));
	j->sync = JOURNAL_SYNC; /* SQLite's own default */
	j->path = journal_path(dir, e);
	if (!j->path)
		goto undo;
	if (connect_db(j, e)) {
		if (e->kind != ERR_SYSTEM || e->sys != ENOENT)
			goto undo;
		if (db_create(dir, j->path, e) || connect_db(j, e))
			goto undo;
		created = true;
	}
	configure(j);
	if (check_format(j, e))
		goto undo;
	/* the log and its directory entry are durable before anybody relies on them */
	if (created && checkpoint(j, e))
		goto undo;
	*out = j;
	return 0;
undo:
	journal_close(j);
	return -1;
}

void journal_close(struct journal *j)
{
	size_t i;

	if (!j)
		return;
	for (i = 0; i < ARRAY_SIZE(j->st); i++)
		sqlite3_finalize(j->st[i]);
	sqlite3_close(j->db);
	free(j->path);
	free(j);
}

bool journal_checkpoint_due(const struct journal *j)
{
	return j->frames > FRAMES_DUE;
}

int journal_checkpoint(struct journal *j, struct err *e)
{
	return checkpoint(j, e);
}
