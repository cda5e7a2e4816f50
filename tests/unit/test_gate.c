/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate reads of a caller, here ourselves, and what its halves tell each other. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "gate/caller_side.h"
#include "gate/image.h"
#include "gate/image_cache.h"
#include "gate/programs.h"
#include "gate/wire.h"
#include "sys/procmem.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Two pages, the second of which is not there. */
static char *edge(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	munmap(p + 4096, 4096);
	return p + 4096;
}

static void strings(void **state)
{
	char out[64], *end = edge();

	(void)state;
	assert_int_equal(procmem_string(getpid(), at("word"), out, sizeof(out)), 4);
	assert_string_equal(out, "word");
	assert_int_equal(procmem_string(getpid(), at("word"), out, 4), -ENAMETOOLONG);
	memcpy(end - 5, "last", 5);
	assert_int_equal(procmem_string(getpid(), at(end - 5), out, sizeof(out)), 4);
	memcpy(end - 5, "lasts", 5);
	assert_int_equal(procmem_string(getpid(), at(end - 5), out, sizeof(out)),
			 -EFAULT);
	assert_int_equal(procmem_string(getpid(), 8, out, sizeof(out)), -EFAULT);
}

/* One behind the other, as xargs has them; the other way round; one that ends with the memory. */
static void many_in_a_row(void **state)
{
	enum { MANY = 20000, EACH = 40 };
	const char **v = calloc(MANY + 1, sizeof(*v));
	char *block = malloc(MANY * EACH), *want = malloc(MANY * EACH), *text, *p = block;
	char *end = edge();
	size_t len, n, total = 0;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		v[i] = p;
		p += snprintf(p, EACH, "%zu-%.*s", i, (int)(i % 30),
			      "abcdefghijklmnopqrstuvwxyzabcd") +
		     1;
	}
	text = procmem_args(getpid(), at(v), NULL, &len, &n);
	assert_non_null(text);
	assert_int_equal(n, MANY);
	assert_int_equal(len, p - block);
	assert_memory_equal(text, block, len);
	free(text);
	for (size_t i = 0; i < MANY / 2; i++) {
		const char *other = v[i];

		v[i] = v[MANY - 1 - i];
		v[MANY - 1 - i] = other;
	}
	v[MANY - 1] = memcpy(end - 5, "last", 5);
	for (size_t i = 0; i < MANY; i++)
		total += strlen(strcpy(want + total, v[i])) + 1;
	text = procmem_args(getpid(), at(v), NULL, &len, &n);
	assert_non_null(text);
	assert_int_equal(len, total);
	assert_memory_equal(text, want, len);
	free(text);
	memcpy(end - 5, "lasts", 5);
	assert_null(procmem_args(getpid(), at(v), NULL, &len, &n));
	assert_int_equal(errno, EFAULT);
	free(v);
	free(block);
	free(want);
}

static void arguments(void **state)
{
	enum { MANY = 5000 };
	const char **many = calloc(MANY + 1, sizeof(*many));
	char *text, *big = malloc(PROCMEM_ARG_MAX + 1), *end = edge();
	const char *few[] = { "a", "", "long", NULL };
	size_t len, n;

	(void)state;
	text = procmem_args(getpid(), at(few), NULL, &len, &n);
	assert_int_equal(n, 3);
	assert_int_equal(len, 8);
	assert_memory_equal(text, "a\0\0long", 8);
	free(text);
	text = procmem_args(getpid(), 0, NULL, &len,
			    &n); /* the kernel makes one of none */
	assert_int_equal(n, 1);
	assert_int_equal(len, 1);
	free(text);
	for (size_t i = 0; i < MANY; i++)
		many[i] = "xy";
	text = procmem_args(getpid(), at(many), NULL, &len, &n);
	assert_int_equal(n, MANY);
	assert_int_equal(len, MANY * 3);
	free(text);
	memset(big, 'b', PROCMEM_ARG_MAX + 1);
	big[PROCMEM_ARG_MAX - 1] = '\0';
	few[1] = big;
	text = procmem_args(getpid(), at(few), NULL, &len, &n);
	assert_int_equal(len, 2 + PROCMEM_ARG_MAX + 5);
	free(text);
	big[PROCMEM_ARG_MAX - 1] = 'b';
	big[PROCMEM_ARG_MAX] = '\0';
	assert_null(procmem_args(getpid(), at(few), NULL, &len, &n));
	assert_int_equal(errno, E2BIG);
	big[100000] = '\0';
	for (size_t i = 0; i < MANY; i++)
		many[i] = big;
	assert_null(procmem_args(getpid(), at(many), NULL, &len, &n));
	assert_int_equal(errno, E2BIG);
	few[1] = (const char *)8;
	assert_null(procmem_args(getpid(), at(few), NULL, &len, &n));
	assert_int_equal(errno, EFAULT);
	/* A vector that runs into nothing. */
	memcpy(end - 8, &many[0], 8);
	assert_null(procmem_args(getpid(), at(end - 8), NULL, &len, &n));
	assert_int_equal(errno, EFAULT);
	free(many);
	free(big);
}

/* Path and arguments in one look, or in as many as it takes. */
static void first_look(void **state)
{
	char *page = edge() - 4096, *second = edge() - 4096;
	const char **v = (const char **)page;
	struct procmem_exec seen;
	char *text;
	size_t len, n;

	(void)state;
	strcpy(page + 64, "/bin/prog");
	strcpy(page + 80, "a");
	v[0] = page + 64;
	v[1] = page + 80;
	v[2] = NULL;
	assert_int_equal(procmem_exec(getpid(), at(page + 64), at(v), &seen), 9);
	assert_string_equal(seen.path, "/bin/prog");
	/* No look any more: what is there now does not matter. */
	page[80] = 'b';
	text = procmem_args(getpid(), at(v), &seen, &len, &n);
	assert_int_equal(n, 2);
	assert_memory_equal(text, "/bin/prog\0a", 12);
	free(text);
	/* One of them elsewhere, or before the path: all are read. */
	v[1] = strcpy(second, "elsewhere");
	assert_int_equal(procmem_exec(getpid(), at(page + 64), at(v), &seen), 9);
	text = procmem_args(getpid(), at(v), &seen, &len, &n);
	assert_int_equal(len, 20);
	assert_memory_equal(text, "/bin/prog\0elsewhere", 20);
	free(text);
	/* A vector without an end, a path without one, one that is not there. */
	for (size_t i = 0; i < 4096 / sizeof(*v); i++)
		v[i] = page;
	assert_int_equal(procmem_exec(getpid(), at(second), at(v), &seen), 9);
	assert_null(procmem_args(getpid(), at(v), &seen, &len, &n));
	assert_int_equal(errno, EFAULT);
	memset(second, 'x', 4096);
	assert_int_equal(procmem_exec(getpid(), at(second + 8), at(v), &seen), -EFAULT);
	assert_int_equal(procmem_exec(getpid(), at(second), at(v), &seen), -ENAMETOOLONG);
	assert_int_equal(procmem_exec(getpid(), 8, at(v), &seen), -EFAULT);
	second[4095] = '\0';
	assert_int_equal(procmem_exec(getpid(), at(second + 4000), 0, &seen), 95);
	text = procmem_args(getpid(), 0, &seen, &len, &n);
	assert_int_equal(n, 1);
	free(text);
}

static struct image_cache *recall;

static int ask(const char *path, int dir, unsigned flags, bool again, struct image *i)
{
	static const char *argv[] = { "name", "one", NULL };
	AUTO_CLOSE int fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct image_place place = { .since = { INT64_MAX, 0 },
					   .root = geteuid() == 0,
					   .fds = fds,
					   .recall = recall };
	struct seccomp_notif req = { .pid = (uint32_t)getpid() };

	req.data.nr = SYS_execveat;
	req.data.args[0] = (uint64_t)dir;
	req.data.args[1] = at(path);
	req.data.args[2] = at(argv);
	req.data.args[4] = flags;
	return again ? image_again(&place, &req, i) : image_asked(&place, &req, i);
}

static int asked(const char *path, int dir, unsigned flags, struct image *i)
{
	return ask(path, dir, flags, false, i);
}

static int new_recall(void **state)
{
	(void)state;
	recall = image_cache_new();
	return 0;
}

static int no_recall(void **state)
{
	(void)state;
	image_cache_free(recall);
	return 0;
}

/* Absolute paths are looked up once, until somebody wants to know better. */
static void recalled(void **state)
{
	char dir[] = "/tmp/stet-gate-XXXXXX", link[64];
	struct image i, j;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(symlink("/usr/bin/env", link), 0);
	assert_int_equal(asked(link, AT_FDCWD, 0, &i), 0);
	assert_int_equal(i.recalled, 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/usr/bin/id", link), 0);
	assert_int_equal(asked(link, AT_FDCWD, 0, &j), 0);
	assert_int_not_equal(j.recalled, 0);
	assert_true(image_same(&i, &j));
	image_free(&i);
	assert_int_equal(ask(link, AT_FDCWD, 0, true, &j), 0);
	assert_int_equal(j.recalled, 0);
	assert_string_equal(j.exe, "/usr/bin/id");
	image_free(&j);
	/* Not with a flag, which may mean something else. */
	assert_int_equal(asked(link, AT_FDCWD, AT_SYMLINK_NOFOLLOW, &i), 0);
	assert_int_equal(i.recalled, 0);
	image_free(&i);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void programs(void **state)
{
	char dir[] = "/tmp/stet-gate-XXXXXX", where[4096], self[4096] = "";
	int here, fd;
	struct image i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	here = open(dir, O_PATH | O_DIRECTORY);
	assert_non_null(realpath("/proc/self/exe", self));
	fd = openat(here, "prog", O_RDWR | O_CREAT, 0755);
	assert_int_equal(symlinkat("prog", here, "link"), 0);
	assert_int_equal(symlinkat("nowhere", here, "dangling"), 0);
	snprintf(where, sizeof(where), "%s/prog", dir);

	assert_int_equal(asked("link", here, 0, &i), 0);
	assert_string_equal(i.exe, where);
	assert_int_equal(i.argc, 2);
	assert_memory_equal(i.args, "name\0one", 9);
	assert_int_equal(i.flags, 0);
	image_free(&i);
	assert_int_equal(asked(where, AT_FDCWD, 0, &i), 0);
	assert_string_equal(i.exe, where);
	image_free(&i);
	assert_int_equal(asked("", fd, AT_EMPTY_PATH, &i), 0);
	assert_string_equal(i.exe, where);
	image_free(&i);
	assert_int_equal(asked("/proc/self/exe", AT_FDCWD, 0, &i), 0);
	assert_string_equal(i.exe, self);
	image_free(&i);

	/* Certain failures, and those that are the kernel's to find. */
	assert_int_equal(asked("", here, 0, &i), -ENOENT);
	assert_int_equal(asked("none", here, 0, &i), -ENOENT);
	assert_int_equal(asked("none/such", here, 0, &i), -ENOENT);
	assert_int_equal(asked("/usr/bin/no-such-program", here, 0, &i), -ENOENT);
	assert_int_equal(asked((const char *)8, here, 0, &i), -EFAULT);
	static const char *const open_questions[] = { "dangling", "prog/x", ".",
						      "/proc/self/fd/900" };
	for (size_t k = 0; k < LEN(open_questions); k++) {
		assert_int_equal(asked(open_questions[k], here, 0, &i), 0);
		assert_null(i.exe);
		assert_int_equal(i.flags, EXE_UNKNOWN);
		image_free(&i);
	}

	/* Without a name, and in memory. */
	assert_int_equal(unlinkat(here, "prog", 0), 0);
	assert_int_equal(asked("", fd, AT_EMPTY_PATH, &i), 0);
	assert_string_equal(i.exe, where);
	assert_int_equal(i.flags, EXE_DELETED);
	image_free(&i);
	close(fd);
	fd = memfd_create("x", 0);
	assert_int_equal(asked("", fd, AT_EMPTY_PATH, &i), 0);
	assert_int_equal(i.flags, EXE_DELETED | EXE_MEMFD);
	image_free(&i);
	close(fd);
	unlinkat(here, "link", 0);
	unlinkat(here, "dangling", 0);
	close(here);
	rmdir(dir);
}

static void loaders(void **state)
{
	static const char *const yes[] = { "/lib64/ld-linux-x86-64.so.2", "ld-2.36.so",
					   "/lib/ld-musl-x86_64.so.1", "ld.so",
					   "/lib/ld-linux-aarch64.so.1" };
	static const char *const no[] = { "/usr/bin/ld", "ld.bfd", "/usr/bin/ldd",
					  "ld-linux", "/ld.so/x" };

	(void)state;
	for (size_t i = 0; i < LEN(yes); i++)
		assert_true(programs_loader(yes[i]));
	for (size_t i = 0; i < LEN(no); i++)
		assert_false(programs_loader(no[i]));
}

static void packets(void **state)
{
	char exe[] = "/bin/x", args[] = "x\0yy";
	struct image i = { .exe = exe, .args = args, .args_len = 5, .argc = 2 };
	const struct verdict v = { .kind = VERDICT_ASK, .rule = "r", .hint = "h" };
	struct wire_head h = { .kind = WIRE_ASK, .pid = 7, .ppid = 6, .seq = 5 };
	AUTO_BUF struct buf b = BUF_INIT;
	struct wire_exec x;

	(void)state;
	wire_pack(&b, &h, &i, &v);
	assert_int_equal(wire_unpack(b.data, b.len, &x), 0);
	assert_string_equal(x.facts.exe, "/bin/x");
	assert_null(x.facts.cwd);
	assert_int_equal(x.facts.argc, 2);
	assert_string_equal(x.facts.argv[1], "yy");
	assert_string_equal(x.verdict.rule, "r");
	assert_null(x.verdict.why);
	assert_string_equal(x.verdict.hint, "h");
	assert_int_equal(x.head.seq, 5);
	free(x.argv);
	/* Every shorter one is noticed. */
	for (size_t n = 0; n < b.len; n++) {
		int r = wire_unpack(b.data, n, &x);

		free(x.argv);
		assert_int_equal(r, -EPROTO);
	}
}

/* Messages go together as far as a packet is to be filled; a larger one goes alone. */
static void bundles(void **state)
{
	static const size_t sizes[] = { 100, 1, WIRE_FILL, 20000, 12000, 700, 60000 };
	/* The sums, with a length of 4 bytes before each. */
	static const size_t want[] = { 109, WIRE_FILL + 4, 32712, 60004 };
	AUTO_BUF struct buf b = BUF_INIT;
	char *bytes = calloc(1, 65536);
	size_t at = 0, k = 0, left;
	const char *data, *message;

	(void)state;
	for (size_t i = 0; i < LEN(sizes); i++) {
		memset(bytes, 'a' + (int)i, sizes[i]);
		wire_add(&b, bytes, sizes[i]);
	}
	for (size_t i = 0; at < b.len; i++) {
		left = wire_fill(b.data + at, b.len - at);
		assert_true(i < LEN(want));
		assert_int_equal(left, want[i]);
		data = b.data + at;
		at += left;
		for (; left; k++) {
			assert_int_equal(wire_next(&data, &left, &message), sizes[k]);
			assert_int_equal(message[0], 'a' + (int)k);
			assert_int_equal(message[sizes[k] - 1], 'a' + (int)k);
		}
		assert_int_equal(wire_next(&data, &left, &message), 0);
	}
	assert_int_equal(k, LEN(sizes));
	/* What is cut off, or is nothing, is noticed. */
	for (size_t n = 1; n < 104; n++) {
		data = b.data;
		left = n;
		assert_int_equal(wire_next(&data, &left, &message), -EPROTO);
	}
	data = "\0\0\0\0";
	left = 4;
	assert_int_equal(wire_next(&data, &left, &message), -EPROTO);
	free(bytes);
}

/* A command that is too long is cut between two arguments, and counted whole. */
static void long_packets(void **state)
{
	enum { N = 1000, EACH = 100 };
	char *args = malloc(N * EACH);
	struct image i = { .args = args, .args_len = N * EACH, .argc = N };
	const struct verdict v = { .kind = VERDICT_ALLOW };
	struct wire_head h = { .kind = WIRE_TELL };
	AUTO_BUF struct buf b = BUF_INIT;
	struct wire_exec x;

	(void)state;
	memset(args, 'a', N * EACH);
	for (size_t k = 1; k <= N; k++)
		args[k * EACH - 1] = '\0';
	wire_pack(&b, &h, &i, &v);
	assert_true(b.len <= WIRE_MAX);
	assert_int_equal(wire_unpack(b.data, b.len, &x), 0);
	assert_int_equal(x.head.argc, N);
	assert_int_equal(x.facts.argc, WIRE_ARGS_MAX / EACH);
	assert_int_equal(strlen(x.facts.argv[x.facts.argc - 1]), EACH - 1);
	free(x.argv);
	free(args);
}

static void note_end(void *ctx, pid_t pid, int status)
{
	(void)status;
	*(pid_t *)ctx = pid;
}

/* PID 1 may end before it has read an answer: what it has told by then counts. */
static void last_words(void **state)
{
	const struct wire_head h = { .kind = WIRE_EXIT, .pid = 42 };
	const struct wire_answer unread = { .yes = 1 };
	AUTO_BUF struct buf b = BUF_INIT;
	pid_t ended = 0;
	const struct gate_calls calls = { .ctx = &ended, .ended = note_end };
	struct desk d = { .calls = &calls };
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	d.sock = s[0];
	wire_add(&b, &h, sizeof(h));
	assert_int_equal(send(s[1], b.data, b.len, 0), b.len);
	assert_int_equal(send(s[0], &unread, sizeof(unread), 0), sizeof(unread));
	close(s[1]);
	assert_int_equal(desk_serve(&d), -ECONNRESET);
	assert_int_equal(ended, 42);
	desk_free(&d);
	close(s[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings),
		cmocka_unit_test(arguments),
		cmocka_unit_test(first_look),
		cmocka_unit_test_setup_teardown(recalled, new_recall, no_recall),
		cmocka_unit_test(many_in_a_row),
		cmocka_unit_test_setup_teardown(programs, new_recall, no_recall),
		cmocka_unit_test(loaders),
		cmocka_unit_test(packets),
		cmocka_unit_test(bundles),
		cmocka_unit_test(long_packets),
		cmocka_unit_test(last_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
