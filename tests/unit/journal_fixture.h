/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TESTS_JOURNAL_FIXTURE_H
#define STET_TESTS_JOURNAL_FIXTURE_H

/* What the tests of the journal share: a directory of their own, rows, children. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/journal.h"
#include "journal/txn_rows.h"

struct fixture {
	char dir[64];
	char db[80];
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	assert_non_null(f);
	if (!tmp || strlen(tmp) > 32)
		tmp = "/tmp";
	snprintf(f->dir, sizeof(f->dir), "%s/stet-journal.XXXXXX", tmp);
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->db, sizeof(f->db), "%s/journal.db", f->dir);
	*state = f;
	return 0;
}

static inline void empty_dir(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *de;

	assert_non_null(d);
	while ((de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			unlinkat(dirfd(d), de->d_name, 0);
	closedir(d);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	chmod(f->dir, 0700);
	empty_dir(f->dir);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static inline struct journal *must_open(const char *dir)
{
	struct err e = { 0 };
	struct journal *j;

	if (journal_open(dir, &j, &e))
		fail_msg("%s", e.msg);
	return j;
}

static inline int64_t add(struct journal *j, const char *name, enum journal_sync s,
			  struct err *e)
{
	AUTO_FREE char *copy = name ? strdup(name) : NULL;
	char host[] = "/host", dir[] = "/dir", word[] = "true", kind[] = "network",
	     what[] = "tcp", workspace[] = "/w";
	char *argv[] = { word, word, NULL };
	struct layer_record layers[] = { { LAYER_OVERLAY, host, dir, true },
					 { LAYER_SCRATCH, host, dir, false },
					 { LAYER_OVERLAY, host, dir, false } };
	struct effect_record effects[] = { { kind, what } };
	struct txn_record r = { .name = copy,
				.state = TXN_ACTIVE,
				.workspace = workspace,
				.argv = argv,
				.begin_ns = 1,
				.exit_status = -1,
				.layers = layers,
				.nlayers = ARRAY_SIZE(layers),
				.effects = effects,
				.neffects = ARRAY_SIZE(effects) };

	return journal_txn_add(j, &r, s, e) ? -1 : r.id;
}

static inline int64_t must_add(struct journal *j, const char *name)
{
	struct err e = { 0 };
	int64_t id = add(j, name, JOURNAL_LAZY, &e);

	if (id < 0)
		fail_msg("%s", e.msg);
	return id;
}

static inline void raw_sql(const struct fixture *f, const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static inline void write_file(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static inline char *read_all(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size + 1);
	assert_non_null(data);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	*len = (size_t)st.st_size;
	return data;
}

struct seen {
	struct journal *j, *other;
	int64_t last;
	int n, stop_at, result;
};

static inline int look(void *arg, struct txn_record *r, struct err *e)
{
	struct seen *s = arg;

	if (s->last && r->id != s->last - 1)
		return err_set(e, ERR_STATE, "out of order");
	if (r->nlayers != 3 || r->neffects != 1 || !r->argv[1] || r->argv[2])
		return err_set(e, ERR_STATE, "incomplete");
	s->last = r->id;
	s->n++;
	return s->n == s->stop_at ? s->result : 0;
}

/* Runs @fn in a child; its return value is the exit status. */
static inline pid_t spawn(int (*fn)(void *), void *arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(arg));
	return pid;
}

static inline int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
