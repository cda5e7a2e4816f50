/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workloads that no standard tool does, without an interpreter's start-up in the
 * figures. Everything happens below the present directory.
 *
 * usage: work tree FILES [BYTES]   makes FILES small files, 100 to a directory
 *        work append N             appends a line to each of the first N files of `tree`
 *        work rename N             renames each of the first N files of `tree`, in place
 *        work unrename N           and back
 *        work exchange N DIR       exchanges each of them with its like below DIR, one sync
 *        work fsync N              creates N files, writes to each, fsyncs each
 *        work big MIB              makes a file `big` of this size, with data in it
 *        work poke                 writes one byte into the middle of `big`
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PER_DIR = 100, BLOCK = 1 << 20 };

static void die(const char *what)
{
	fprintf(stderr, "work: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_file(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		die(name);
	return fd;
}

static void put(int fd, const char *data, size_t len)
{
	if (write(fd, data, len) != (ssize_t)len)
		die("write");
}

static void name_of(char *out, size_t size, long i, const char *suffix)
{
	snprintf(out, size, "d%04ld/f%02ld%s", i / PER_DIR, i % PER_DIR, suffix);
}

static void make_tree(long files, size_t bytes)
{
	char name[64], *data;
	long i;
	int fd;

	data = malloc(bytes + 32);
	if (!data)
		die("malloc");
	memset(data, 'x', bytes);
	for (i = 0; i < files; i++) {
		if (i % PER_DIR == 0) {
			snprintf(name, sizeof(name), "d%04ld", i / PER_DIR);
			if (mkdir(name, 0755) < 0)
				die(name);
		}
		name_of(name, sizeof(name), i, "");
		fd = open_file(name, O_WRONLY | O_CREAT | O_EXCL);
		snprintf(data + bytes, 32, "\n%ld\n", i);
		put(fd, data, bytes + strlen(data + bytes));
		close(fd);
	}
	free(data);
}

static void append(long n)
{
	char name[64];
	long i;
	int fd;

	for (i = 0; i < n; i++) {
		name_of(name, sizeof(name), i, "");
		fd = open_file(name, O_WRONLY | O_APPEND);
		put(fd, "one more line\n", 14);
		close(fd);
	}
}

static void rename_all(long n, const char *from, const char *to)
{
	char a[64], b[64];
	long i;

	for (i = 0; i < n; i++) {
		name_of(a, sizeof(a), i, from);
		name_of(b, sizeof(b), i, to);
		if (rename(a, b) < 0)
			die(a);
	}
}

/* What a commit cannot do without: no journal, no look at what is there. */
static void exchange_all(long n, const char *dir)
{
	char a[64], *b = malloc(strlen(dir) + sizeof(a) + 1);
	long i;
	int fd;

	if (!b)
		die("malloc");
	for (i = 0; i < n; i++) {
		name_of(a, sizeof(a), i, "");
		sprintf(b, "%s/%s", dir, a);
		if (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) < 0)
			die(b);
	}
	fd = open_file(".", O_RDONLY);
	if (syncfs(fd) < 0)
		die("syncfs");
	close(fd);
	free(b);
}

static void fsync_all(long n)
{
	char name[64];
	long i;
	int fd;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "s%04ld", i);
		fd = open_file(name, O_WRONLY | O_CREAT | O_EXCL);
		put(fd, "some data\n", 10);
		if (fsync(fd) < 0)
			die("fsync");
		close(fd);
	}
}

static void make_big(long mib)
{
	char *block = malloc(BLOCK);
	int fd = open_file("big", O_WRONLY | O_CREAT | O_TRUNC);
	long i;

	if (!block)
		die("malloc");
	for (i = 0; i < mib; i++) {
		memset(block, 'a' + (int)(i % 26), BLOCK);
		put(fd, block, BLOCK);
	}
	free(block);
	close(fd);
}

static void poke(void)
{
	int fd = open_file("big", O_RDWR);
	struct stat st;

	if (fstat(fd, &st) < 0 || pwrite(fd, "!", 1, st.st_size / 2) != 1)
		die("big");
	close(fd);
}

int main(int argc, char *argv[])
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(what, "tree"))
		make_tree(n, argc > 3 ? (size_t)atol(argv[3]) : 300);
	else if (!strcmp(what, "append"))
		append(n);
	else if (!strcmp(what, "rename"))
		rename_all(n, "", ".new");
	else if (!strcmp(what, "unrename"))
		rename_all(n, ".new", "");
	else if (!strcmp(what, "exchange") && argc > 3)
		exchange_all(n, argv[3]);
	else if (!strcmp(what, "fsync"))
		fsync_all(n);
	else if (!strcmp(what, "big"))
		make_big(n);
	else if (!strcmp(what, "poke"))
		poke();
	else {
		fprintf(stderr, "work: unknown workload '%s'\n", what);
		return 2;
	}
	return 0;
}
