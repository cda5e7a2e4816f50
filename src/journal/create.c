/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/text.h"
#include "journal/create.h"
#include "journal/db.h"

#define NEW_NAME "journal.db.new"

/*
 * A journal is made under another name and renamed when it is whole, so nobody ever
 * meets half of one, whatever happens to its maker. The flock on the directory keeps
 * makers apart.
 */

/* The file is made by us: SQLite would let the umask decide who may read it. */
static int make_file(int dirfd)
{
	int fd;

	unlinkat(dirfd, NEW_NAME, 0);
	unlinkat(dirfd, NEW_NAME "-journal", 0);
	unlinkat(dirfd, NEW_NAME "-wal", 0);
	unlinkat(dirfd, NEW_NAME "-shm", 0);
	if (FAULT_AT("journal.create"))
		return -errno;
	fd = openat(dirfd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int build(struct journal *new, struct err *e)
{
	int rc;

	rc = sqlite3_open_v2(new->path, &new->db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
				     SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE,
			     NULL);
	/* not synced here: once, below, when it is whole */
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(new->db,
				  "PRAGMA journal_mode=MEMORY;"
				  "PRAGMA synchronous=OFF;"
				  "BEGIN EXCLUSIVE",
				  NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = db_migrate(new->db, 0);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(new->db, "COMMIT; PRAGMA journal_mode=WAL", NULL, NULL,
				  NULL);
	if (rc != SQLITE_OK)
		db_error(new, rc, "create the journal", e);
	sqlite3_close(new->db);
	new->db = NULL;
	return rc == SQLITE_OK ? 0 : -1;
}

/*
 * A log without its database is left when somebody moved the database away. Next to a
 * new one SQLite would replay it; beside the file as our hint has it renamed, it
 * still belongs to what it was written for.
 */
static void clear_leftovers(int dirfd)
{
	struct stat st;

	if (fstatat(dirfd, "journal.db-wal", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (st.st_size == 0 || renameat2(dirfd, "journal.db-wal", dirfd,
					  "journal.db.bad-wal", RENAME_NOREPLACE)))
		unlinkat(dirfd, "journal.db-wal", 0);
	unlinkat(dirfd, "journal.db-shm", 0);
	unlinkat(dirfd, "journal.db-journal", 0);
}

/* Durable under its final name. */
static int publish(int dirfd)
{
	AUTO_CLOSE int fd = openat(dirfd, NEW_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || FAULT_AT("journal.fsync") || fsync(fd))
		return -errno;
	clear_leftovers(dirfd);
	/* under the lock and known to be absent: this replaces nothing */
	if (FAULT_AT("journal.rename") ||
	    renameat(dirfd, NEW_NAME, dirfd, "journal.db") ||
	    FAULT_AT("journal.fsync-dir") || fsync(dirfd))
		return -errno;
	return 0;
}

static int create_locked(int dirfd, const char *path, struct err *e)
{
	AUTO_BUF struct buf shown = BUF_INIT;
	AUTO_FREE char *new_path = xasprintf("%s.new", path);
	struct journal new = { .path = new_path };
	struct stat st;
	int r;

	if (fstatat(dirfd, "journal.db", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	text_quote(&shown, path, strlen(path));
	r = make_file(dirfd);
	if (r < 0)
		return err_sys(e, r, "cannot create the journal %s", buf_str(&shown));
	if (build(&new, e)) {
		unlinkat(dirfd, NEW_NAME, 0);
		unlinkat(dirfd, NEW_NAME "-wal", 0);
		unlinkat(dirfd, NEW_NAME "-shm", 0);
		return -1;
	}
	r = publish(dirfd);
	if (r < 0) {
		unlinkat(dirfd, NEW_NAME, 0);
		return err_sys(e, r, "cannot create the journal %s", buf_str(&shown));
	}
	return 0;
}

int db_create(const char *dir, const char *path, struct err *e)
{
	AUTO_CLOSE int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_BUF struct buf shown = BUF_INIT;
	int r;

	text_quote(&shown, dir, strlen(dir));
	if (dirfd < 0)
		return err_sys(e, errno, "cannot open %s", buf_str(&shown));
	do
		r = flock(dirfd, LOCK_EX);
	while (r && errno == EINTR);
	if (r)
		return err_sys(e, errno, "cannot lock %s", buf_str(&shown));
	return create_locked(dirfd, path, e);
}
