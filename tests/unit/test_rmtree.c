/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "sys/rmtree.h"

/* A directory of our own; "t" in it is what gets deleted, "keep" must survive. */
struct fixture {
	char dir[64];
	int fd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	assert_non_null(f);
	if (!tmp || strlen(tmp) > 32)
		tmp = "/tmp";
	snprintf(f->dir, sizeof(f->dir), "%s/stet-rmtree.XXXXXX", tmp);
	assert_non_null(mkdtemp(f->dir));
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(mkdirat(f->fd, "keep", 0755), 0);
	assert_int_equal(mkdirat(f->fd, "keep/d", 0555), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	assert_int_equal(fstatat(f->fd, "keep/d", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0555);
	assert_int_equal(unlinkat(f->fd, "keep/d", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(f->fd, "keep", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(f->dir), 0);
	close(f->fd);
	free(f);
	return 0;
}

static int make_file(int dirfd, const char *name, size_t size)
{
	char block[4096] = { 1 };
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	for (; size > 0; size -= size < sizeof(block) ? size : sizeof(block))
		if (write(fd, block, size < sizeof(block) ? size : sizeof(block)) < 0)
			return -1;
	return close(fd);
}

/*
 * @levels directories deep, a file and a dead link in the outer ones, in the last and here
 * and there between. The innermost's descriptor.
 */
static int make_deep(int dirfd, const char *top, int levels)
{
	int fd = -1, up = dirfd, i;

	for (i = 0; i < levels; i++) {
		const char *name = i ? "a directory" : top;

		if (mkdirat(up, name, 0700))
			return -1;
		fd = openat(up, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (up != dirfd)
			close(up);
		if (fd < 0 || make_file(fd, "zfile", 1) ||
		    symlinkat("/keep", fd, "alink"))
			return -1;
		up = fd;
	}
	return fd;
}

static bool gone(const struct fixture *f)
{
	return faccessat(f->fd, "t", F_OK, AT_SYMLINK_NOFOLLOW) == -1 && errno == ENOENT;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_child(int (*fn)(const struct fixture *), const struct fixture *f)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(f));
	return status_of(pid);
}

static void test_absent(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes = 99;

	assert_int_equal(rmtree_at(f->fd, "t", &bytes), -ENOENT);
	assert_int_equal(bytes, 0);
}

static void test_kinds(void **state)
{
	struct fixture *f = *state;
	AUTO_FREE char *longest = malloc(256);
	const char *names[] = { "\n", "\xff\xfe", "-rf", "...", "a b*?", NULL };
	int fd, i;

	assert_non_null(longest);
	memset(longest, 'n', 255);
	longest[255] = '\0';
	names[5] = longest;
	assert_int_equal(mkdirat(f->fd, "t", 0700), 0);
	fd = openat(f->fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (i = 0; i < 6; i++) {
		assert_int_equal(mkdirat(fd, names[i], 0700), 0);
		AUTO_CLOSE int in = openat(fd, names[i],
					   O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_int_equal(make_file(in, names[i], 10), 0);
	}
	assert_int_equal(symlinkat("../keep", fd, "to-dir"), 0);
	assert_int_equal(symlinkat("/nowhere", fd, "dead"), 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
	assert_int_equal(mknodat(fd, "socket", S_IFSOCK | 0600, 0), 0);
	close(fd);
	assert_int_equal(rmtree_at(f->fd, "t", NULL), 0);
	assert_true(gone(f));
}

static void test_top_is_no_directory(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes;

	assert_int_equal(symlinkat("keep", f->fd, "t"), 0);
	assert_int_equal(rmtree_at(f->fd, "t", NULL), 0);
	assert_true(gone(f));
	assert_int_equal(make_file(f->fd, "t", 100000), 0);
	assert_int_equal(rmtree_at(f->fd, "t", &bytes), 0);
	assert_true(bytes >= 100000 && bytes < 200000);
	assert_true(gone(f));
}

static void test_bytes(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes;
	int fd;

	assert_int_equal(mkdirat(f->fd, "t", 0700), 0);
	fd = openat(f->fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(make_file(fd, "one", 1 << 20), 0);
	assert_int_equal(linkat(fd, "one", fd, "two", 0), 0);
	assert_int_equal(make_file(fd, "outside-too", 1 << 20), 0);
	assert_int_equal(linkat(fd, "outside-too", f->fd, "keep/link", 0), 0);
	close(fd);
	assert_int_equal(rmtree_at(f->fd, "t", &bytes), 0);
	assert_true(bytes >= 1 << 20 && bytes < (1 << 20) + 65536);
	assert_int_equal(unlinkat(f->fd, "keep/link", 0), 0);
}

static bool put(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) > 0;
}

/* A mount namespace in which we may mount; the user stays who he is. */
static bool own_mounts(void)
{
	AUTO_FREE char *uid = xasprintf("%u %u 1", geteuid(), geteuid());
	AUTO_FREE char *gid = xasprintf("%u %u 1", getegid(), getegid());
	bool root = geteuid() == 0;

	if (unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER))
		return false;
	if (!root &&
	    (!put("/proc/self/uid_map", uid) || !put("/proc/self/setgroups", "deny") ||
	     !put("/proc/self/gid_map", gid)))
		return false;
	return syscall(SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* On a tmpfs: ext4 is slow to hand out inodes it has just freed. */
static int delete_deep(const struct fixture *f)
{
	struct rlimit few = { 64, 64 };
	AUTO_CLOSE int top = -1;
	int fd;

	if (!own_mounts() || syscall(SYS_mount, "none", f->dir, "tmpfs", 0, "size=64m"))
		return 1;
	top = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = make_deep(top, "t", 6000);
	if (fd < 0)
		return 2;
	close(fd);
	if (setrlimit(RLIMIT_NOFILE, &few))
		return 3;
	if (rmtree_at(top, "t", NULL))
		return 4;
	return faccessat(top, "t", F_OK, 0) ? 0 : 5;
}

static void test_deep(void **state)
{
	assert_int_equal(run_child(delete_deep, *state), 0);
}

static void test_wide(void **state)
{
	struct fixture *f = *state;
	char name[32];
	int fd, i;

	assert_int_equal(mkdirat(f->fd, "t", 0700), 0);
	fd = openat(f->fd, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(i % 4 ? make_file(fd, name, 0) : mkdirat(fd, name, 0700),
				 0);
	}
	/* deeper than the window, between the others: the wide one is left and taken up */
	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "deep %d", i);
		int in = make_deep(fd, name, 40);

		assert_true(in >= 0);
		close(in);
	}
	close(fd);
	assert_int_equal(rmtree_at(f->fd, "t", NULL), 0);
	assert_true(gone(f));
}

/* As the one who made them: root needs no permission bits. */
static int delete_locked(const struct fixture *f)
{
	static const mode_t modes[] = { 0, 0111, 0222, 0444, 0500, 0555, 0600 };
	char name[16];
	size_t i;

	if (geteuid() == 0 &&
	    (fchown(f->fd, 65534, 65534) || setresgid(65534, 65534, 65534) ||
	     setresuid(65534, 65534, 65534)))
		return 1;
	if (mkdirat(f->fd, "t", 0700))
		return 2;
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		AUTO_CLOSE int top = openat(f->fd, "t",
					    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		AUTO_CLOSE int fd = -1;

		snprintf(name, sizeof(name), "%zu", i);
		if (mkdirat(top, name, 0700))
			return 3;
		fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (make_file(fd, "file", 1) || mkdirat(fd, "sub", modes[i]) ||
		    fchmod(fd, modes[i]))
			return 4;
	}
	if (fchmodat(f->fd, "t", 0, 0))
		return 5;
	return rmtree_at(f->fd, "t", NULL) == 0 ? 0 : 6;
}

static void test_locked(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_child(delete_locked, f), 0);
	assert_true(gone(f));
}

/* Mount points at depth 1 and far beyond the window: they stay, all else goes. */
static int delete_with_mounts(const struct fixture *f)
{
	AUTO_CLOSE int deep = make_deep(f->fd, "t", 100);
	AUTO_CLOSE int dir = -1;
	struct stat st;
	int i;

	if (deep < 0 || !own_mounts())
		return 1;
	/* the descriptor was opened in the old namespace: its mounts are not ours */
	dir = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(dir, "t/bound", 0700) || mkdirat(deep, "mounted", 0700) ||
	    fchdir(dir))
		return 2;
	if (syscall(SYS_mount, "keep", "t/bound", NULL, MS_BIND, NULL) || chdir("t"))
		return 3;
	for (i = 1; i < 100; i++)
		if (chdir("a directory"))
			return 4;
	if (syscall(SYS_mount, "none", "mounted", "tmpfs", 0, "size=64k") ||
	    mkdir("mounted/inside", 0700))
		return 5;
	if (rmtree_at(dir, "t", NULL) != -EXDEV)
		return 6;
	if (stat("mounted/inside", &st) || fstatat(dir, "t/bound/d", &st, 0))
		return 7;
	if (stat("zfile", &st) == 0 || fstatat(dir, "t/zfile", &st, 0) == 0 ||
	    fstatat(dir, "t/a directory/a directory/zfile", &st, 0) == 0)
		return 8;
	return 0;
}

static void test_mounts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(run_child(delete_with_mounts, f), 0);
	assert_false(gone(f));
	assert_int_equal(rmtree_at(f->fd, "t", NULL), 0);
	assert_true(gone(f));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_absent), TEST(test_kinds),  TEST(test_top_is_no_directory),
		TEST(test_bytes),  TEST(test_deep),   TEST(test_wide),
		TEST(test_locked), TEST(test_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
