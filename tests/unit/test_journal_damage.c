/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/txn_rows.h"
#include "journal_fixture.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>

/* Fails to open with @kind; what is there stays as it is. */
static void refuses(const struct fixture *f, enum err_kind kind, const char *word)
{
	struct journal *j = NULL;
	struct err e = { 0 };
	size_t len, len2;
	AUTO_FREE char *before = read_all(f->db, &len);
	AUTO_FREE char *after = NULL;

	assert_int_equal(journal_open(f->dir, &j, &e), -1);
	assert_null(j);
	assert_int_equal(e.kind, kind);
	if (!strstr(e.msg, word))
		fail_msg("\"%s\" is not in \"%s\"", word, e.msg);
	assert_non_null(strstr(e.msg, "journal.db"));
	assert_true(e.hint[0] != '\0');
	after = read_all(f->db, &len2);
	assert_int_equal(len, len2);
	assert_memory_equal(before, after, len);
}

/* All in the database file, no log beside it. */
static void make_plain(const struct fixture *f, int rows)
{
	struct journal *j = must_open(f->dir);
	int i;

	for (i = 0; i < rows; i++)
		must_add(j, NULL);
	journal_close(j);
	raw_sql(f, "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void test_not_a_journal(void **state)
{
	struct fixture *f = *state;
	char noise[8192];

	write_file(f->db, "", 0);
	refuses(f, ERR_CORRUPT, "not a journal");
	memset(noise, 'x', sizeof(noise));
	write_file(f->db, noise, sizeof(noise));
	refuses(f, ERR_CORRUPT, "not a database");
	unlink(f->db);
	raw_sql(f, "CREATE TABLE t(a)");
	refuses(f, ERR_CORRUPT, "not a journal");
	unlink(f->db);
	make_plain(f, 3);
	raw_sql(f, "PRAGMA user_version=0");
	refuses(f, ERR_CORRUPT, "format");
}

static void test_corrupt_header(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *data = NULL;
	size_t len;

	make_plain(f, 3);
	data = read_all(f->db, &len);
	memset(data, 0xff, 16);
	write_file(f->db, data, len);
	refuses(f, ERR_CORRUPT, "not a database");
}

static void test_truncated(void **state)
{
	struct fixture *f = *state;
	struct journal *j = NULL;
	struct seen all = { 0 };
	struct err e = { 0 };

	make_plain(f, 100);
	assert_int_equal(truncate(f->db, 3 * 4096 + 17), 0);
	if (journal_open(f->dir, &j, &e) == 0)
		assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &all, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_non_null(strstr(e.hint, "mv "));
	journal_close(j);
}

static void test_newer(void **state)
{
	struct fixture *f = *state;

	make_plain(f, 1);
	raw_sql(f, "PRAGMA user_version=99");
	refuses(f, ERR_UNSUPPORTED, "newer stet (format 99");
}

static void test_foreign_rows(void **state)
{
	static const char *const edits[] = {
		"UPDATE txn SET state = 'weird'",
		"UPDATE txn SET argv = x'61'",
		"UPDATE txn SET workspace = x'610062'",
		"UPDATE txn SET exit_status = 5000000000",
		"PRAGMA ignore_check_constraints=1; UPDATE layer SET kind = 'weird'",
		"PRAGMA ignore_check_constraints=1; UPDATE layer SET lax_owner = 7",
		"UPDATE effect SET what = x'00'",
		"DROP TABLE effect",
		"ALTER TABLE txn RENAME COLUMN reason TO cause",
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(edits); i++) {
		struct journal *j;
		struct seen all = { 0 };
		struct err e = { 0 };

		make_plain(f, 2);
		raw_sql(f, edits[i]);
		j = must_open(f->dir);
		assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &all, &e), -1);
		assert_int_equal(e.kind, ERR_CORRUPT);
		assert_non_null(strstr(e.hint, "mv "));
		journal_close(j);
		empty_dir(f->dir);
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

/* Everything one may do with a journal; how it ends is returned. */
static enum err_kind exercise(const char *dir)
{
	struct seen all = { 0 };
	struct err e = { 0 };
	struct journal *j;
	int64_t id;

	if (journal_open(dir, &j, &e) == 0 &&
	    journal_txn_each(j, JOURNAL_ALL, look, &all, &e) == 0) {
		id = add(j, "x", JOURNAL_LAZY, &e);
		if (id > 0)
			journal_txn_move(j, id, TXN_ACTIVE, TXN_PRUNED, JOURNAL_LAZY, &e);
	}
	journal_close(j);
	return e.kind;
}

static void flip(const struct fixture *f, const char *suffix, int rounds)
{
	AUTO_FREE char *path = xasprintf("%s%s", f->db, suffix);
	size_t len, db_len;
	AUTO_FREE char *good = read_all(path, &len);
	AUTO_FREE char *db = read_all(f->db, &db_len);
	AUTO_FREE char *bad = malloc(len);
	uint32_t seed = 42;
	int round, n, failed = 0, fine = 0;

	assert_non_null(bad);
	for (round = 0; round < rounds; round++) {
		memcpy(bad, good, len);
		for (n = round % 8; n >= 0; n--)
			bad[next_random(&seed) % len] ^= (char)(1U << next_random(&seed) %
									      8);
		empty_dir(f->dir);
		write_file(f->db, db, db_len);
		write_file(path, bad, len);
		if (exercise(f->dir) == ERR_NONE)
			fine++;
		else
			failed++;
	}
	print_message("%s: %d refused, %d read\n", *suffix ? suffix : "db", failed, fine);
	assert_true(failed > 0 || *suffix);
	assert_true(fine > 0);
}

static void test_flipped_bits(void **state)
{
	struct fixture *f = *state;
	struct journal *j;
	int i;

	make_plain(f, 60);
	flip(f, "", 200);
	empty_dir(f->dir);
	j = must_open(f->dir);
	for (i = 0; i < 10; i++)
		must_add(j, NULL);
	journal_close(j);
	flip(f, "-wal", 60);
}

static void test_symlink(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *elsewhere = xasprintf("%s/elsewhere", f->dir);
	AUTO_FREE char *alias = xasprintf("%s.alias", f->dir);
	struct journal *j;
	struct err e = { 0 };

	make_plain(f, 1);
	assert_int_equal(rename(f->db, elsewhere), 0);
	assert_int_equal(symlink("elsewhere", f->db), 0);
	assert_int_equal(journal_open(f->dir, &j, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	assert_non_null(strstr(e.msg, "symbolic link"));
	/* dangling: must not be created through */
	unlink(elsewhere);
	assert_int_equal(journal_open(f->dir, &j, &e), -1);
	assert_int_equal(access(elsewhere, F_OK), -1);
	unlink(f->db);
	/* the directory may be behind one */
	assert_int_equal(symlink(f->dir, alias), 0);
	j = must_open(alias);
	unlink(alias);
	journal_close(j);
}

/* The database moved away as the hint says: its log goes with it, not to the new one. */
static void test_moved_away(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *bad = xasprintf("%s.bad", f->db);
	AUTO_FREE char *bad_wal = xasprintf("%s.bad-wal", f->db);
	struct seen all = { 0 };
	struct err e = { 0 };
	struct journal *j = must_open(f->dir);

	must_add(j, "old");
	journal_close(j);
	assert_int_equal(rename(f->db, bad), 0);
	j = must_open(f->dir);
	assert_int_equal(journal_txn_each(j, JOURNAL_ALL, look, &all, &e), 0);
	assert_int_equal(all.n, 0);
	assert_int_equal(must_add(j, "old"), 1);
	journal_close(j);
	assert_int_equal(access(bad_wal, F_OK), 0);
}

static int open_read_only_dir(void *arg)
{
	struct journal *j;
	struct err e = { 0 };

	if (geteuid() == 0 &&
	    (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		return 1;
	if (journal_open(arg, &j, &e) == 0)
		return 2;
	return e.kind == ERR_SYSTEM && e.sys == EACCES && strstr(e.msg, "journal.db") ? 0
										      : 3;
}

static void test_read_only_dir(void **state)
{
	struct fixture *f = *state;
	struct journal *j;
	struct err e = { 0 };

	assert_int_equal(chmod(f->dir, 0555), 0);
	assert_int_equal(status_of(spawn(open_read_only_dir, f->dir)), 0);
	assert_int_equal(chmod(f->dir, 0700), 0);
	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(journal_open(f->dir, &j, &e), -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_int_equal(e.sys, ENOENT);
	assert_int_equal(mkdir(f->dir, 0700), 0);
}

static int mount_tmpfs(const char *dir, unsigned long flags, const char *options)
{
	return (int)syscall(SYS_mount, "none", dir, "tmpfs", flags, options);
}

static bool put(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) > 0;
}

/* A mount namespace with a tmpfs of @options on @dir. */
static int own_tmpfs(const char *dir, const char *options)
{
	AUTO_FREE char *uid = xasprintf("%u %u 1", geteuid(), geteuid());
	AUTO_FREE char *gid = xasprintf("%u %u 1", getegid(), getegid());
	bool root = geteuid() == 0;

	if (unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER))
		return -1;
	if (!root &&
	    (!put("/proc/self/uid_map", uid) || !put("/proc/self/setgroups", "deny") ||
	     !put("/proc/self/gid_map", gid)))
		return -1;
	if (syscall(SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	return mount_tmpfs(dir, 0, options);
}

static int full_disk(void *arg)
{
	struct seen all = { 0 }, again = { 0 };
	struct err e = { 0 };
	struct journal *j;
	int n = 0;

	if (own_tmpfs(arg, "size=256k") || journal_open(arg, &j, &e))
		return 1;
	while (n < 10000 && add(j, NULL, n % 2 ? JOURNAL_SYNC : JOURNAL_LAZY, &e) > 0)
		n++;
	if (n < 5 || n == 10000 || e.kind != ERR_SYSTEM || e.sys != ENOSPC ||
	    !e.hint[0]) {
		fprintf(stderr, "%d rows, kind %d: %s\n", n, e.kind, e.msg);
		return 2;
	}
	if (journal_txn_each(j, JOURNAL_ALL, look, &all, &e) || all.n != n)
		return 3;
	journal_close(j);
	if (journal_open(arg, &j, &e) ||
	    journal_txn_each(j, JOURNAL_ALL, look, &again, &e) || again.n != n) {
		fprintf(stderr, "%d of %d rows: %s\n", again.n, n, e.msg);
		return 4;
	}
	journal_close(j);
	/* room again: on as before */
	if (mount_tmpfs(arg, MS_REMOUNT, "size=1m") || journal_open(arg, &j, &e) ||
	    add(j, NULL, JOURNAL_SYNC, &e) != n + 1)
		return 5;
	journal_close(j);
	return 0;
}

static int full_from_the_start(void *arg)
{
	AUTO_FREE char *filler = xasprintf("%s/filler", (char *)arg);
	struct err e = { 0 };
	struct journal *j;
	char block[4096] = { 0 };
	int fd;

	if (own_tmpfs(arg, "size=64k"))
		return 1;
	fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, block, sizeof(block)) == sizeof(block))
		;
	close(fd);
	if (journal_open(arg, &j, &e) == 0 || e.kind != ERR_SYSTEM || e.sys != ENOSPC)
		return 2;
	/* nothing half-made is in the way afterwards */
	if (unlink(filler) || mount_tmpfs(arg, MS_REMOUNT, "size=1m"))
		return 3;
	if (journal_open(arg, &j, &e))
		return 4;
	journal_close(j);
	return 0;
}

static int read_only_mount(void *arg)
{
	struct seen all = { 0 };
	struct err e = { 0 };
	struct journal *j;

	if (own_tmpfs(arg, "size=1m") || journal_open(arg, &j, &e) ||
	    add(j, NULL, JOURNAL_LAZY, &e) != 1)
		return 1;
	journal_close(j);
	if (mount_tmpfs(arg, MS_REMOUNT | MS_RDONLY, NULL))
		return 2;
	if (journal_open(arg, &j, &e) ||
	    journal_txn_each(j, JOURNAL_ALL, look, &all, &e) || all.n != 1) {
		fprintf(stderr, "%s\n", e.msg);
		return 3;
	}
	if (add(j, NULL, JOURNAL_LAZY, &e) != -1 || e.kind != ERR_SYSTEM ||
	    e.sys != EROFS) {
		fprintf(stderr, "kind %d sys %d: %s\n", e.kind, e.sys, e.msg);
		return 4;
	}
	journal_close(j);
	return 0;
}

static void test_full_disk(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(status_of(spawn(full_disk, f->dir)), 0);
	assert_int_equal(status_of(spawn(full_from_the_start, f->dir)), 0);
}

static void test_read_only_mount(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(status_of(spawn(read_only_mount, f->dir)), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_not_a_journal),   TEST(test_corrupt_header),
		TEST(test_truncated),	    TEST(test_newer),
		TEST(test_foreign_rows),    TEST(test_flipped_bits),
		TEST(test_symlink),	    TEST(test_moved_away),
		TEST(test_read_only_dir),   TEST(test_full_disk),
		TEST(test_read_only_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
