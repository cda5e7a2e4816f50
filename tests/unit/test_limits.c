/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "limits/cgroup.h"
#include "limits/limit.h"
#include "limits/limits.h"
#include "limits/scan.h"
#include "sys/rmtree.h"

static char top[64];

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(top, sizeof(top), "%.40s/limits-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	AUTO_FREE char *parent = xstrndup(top, (size_t)(strrchr(top, '/') - top));
	AUTO_CLOSE int fd = open(parent, O_RDONLY | O_DIRECTORY);

	(void)state;
	return rmtree_at(fd, strrchr(top, '/') + 1, NULL);
}

static void put(const char *rel, const char *text, size_t len)
{
	AUTO_FREE char *path = xasprintf("%s/%s", top, rel);
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
}

static void make(const char *rel)
{
	AUTO_FREE char *path = xasprintf("%s/%s", top, rel);

	assert_int_equal(mkdir(path, 0700), 0);
}

static struct disk_use measure(uint64_t max)
{
	struct disk_use u = { 0 };

	disk_measure(top, max, &u);
	return u;
}

static bool has_size(uint64_t size)
{
	struct disk_use u = { .mark = size };

	disk_measure(top, 0, &u);
	return u.marked;
}

static void test_disk_counts_once(void **state)
{
	AUTO_FREE char *data = xcalloc(1, 1 << 20);
	AUTO_FREE char *a = xasprintf("%s/d/a", top), *b = xasprintf("%s/b", top);
	uint64_t before;

	(void)state;
	make("d");
	memset(data, 'x', 1 << 20);
	put("d/a", data, 1 << 20);
	before = measure(0).bytes;
	assert_in_range(before, 1 << 20, (1 << 20) + 65536);
	assert_int_equal(link(a, b), 0);
	assert_int_equal(measure(0).bytes, before);
	assert_true(has_size(1 << 20) && !has_size((1 << 20) + 1));
	assert_int_equal(measure(0).entries, 3);
	/* A hole takes no space, but has a size. */
	assert_int_equal(truncate(a, 8 << 20), 0);
	assert_true(has_size(8 << 20) && !has_size(1 << 20));
	assert_in_range(measure(0).bytes, 1, before + 65536);
}

static void test_disk_follows_nothing(void **state)
{
	AUTO_FREE char *link = xasprintf("%s/link", top);

	(void)state;
	assert_int_equal(symlink("/usr", link), 0);
	assert_int_equal(measure(0).entries, 1);
}

static void test_disk_cut(void **state)
{
	char name[16];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		put(name, "x", 1);
	}
	assert_true(measure(10).cut);
	assert_false(measure(20).cut);
	assert_false(measure(0).cut);
}

static void test_disk_unreadable(void **state)
{
	AUTO_FREE char *d = xasprintf("%s/d", top);

	(void)state;
	make("d");
	put("d/f", "x", 1);
	assert_int_equal(chmod(d, 0), 0);
	assert_int_equal(measure(0).unreadable, geteuid() != 0);
	assert_int_equal(chmod(d, 0700), 0);
	assert_false(measure(0).unreadable);
}

/* A directory that looks like procfs: only what is read of it is there. */
static struct proc_scan *fake_proc(void)
{
	return proc_scan_new(open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static void stat_of(int pid, const char *name, unsigned ticks, unsigned inherited,
		    unsigned threads, unsigned start, unsigned pages)
{
	AUTO_FREE char *dir = xasprintf("%s/%d", top, pid);
	AUTO_FREE char *rel = xasprintf("%d/stat", pid);
	AUTO_FREE char *text = xasprintf(
		"%d (%s) S 1 1 1 0 -1 0 0 0 0 0 %u 0 %u 0 20 0 %u 0 %u 999 %u 0", pid,
		name, ticks, inherited, threads, start, pages);

	mkdir(dir, 0700);
	put(rel, text, strlen(text));
}

static void test_processes_are_counted(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct proc_scan *s;
	struct proc_use u;

	(void)state;
	make("self-made");
	stat_of(1, "init", 500, 7, 1, 1, 100);
	stat_of(2, "sh", 10, 3, 1, 5, 20);
	/* The name is the process's own: it may look like fields. */
	stat_of(30, "a) R 9 9 (x", 20, 0, 4, 6, 30);
	s = fake_proc();
	assert_non_null(s);
	assert_int_equal(proc_scan_look(s, &u), 0);
	assert_int_equal(u.pids, 5);
	assert_int_equal(u.rss, 50 * page);
	assert_int_equal(u.ticks, 10 + 3 + 20 + 7);
	proc_scan_free(s);
}

static void remove_pid(int pid)
{
	AUTO_FREE char *name = xasprintf("%d", pid);
	AUTO_CLOSE int fd = open(top, O_RDONLY | O_DIRECTORY);

	assert_int_equal(rmtree_at(fd, name, NULL), 0);
}

/* CPU time stays known, whether somebody waited for the dead or not. */
static void test_time_of_the_dead_counts(void **state)
{
	struct proc_scan *s;
	struct proc_use u;

	(void)state;
	stat_of(1, "init", 0, 0, 1, 1, 1);
	stat_of(2, "sh", 1, 0, 1, 5, 1);
	stat_of(3, "spin", 50, 0, 1, 6, 1);
	s = fake_proc();
	assert_int_equal(proc_scan_look(s, &u), 0);
	assert_int_equal(u.ticks, 51);
	/* Nobody waited: another one, with the same number. */
	remove_pid(3);
	stat_of(3, "spin", 40, 0, 1, 7, 1);
	assert_int_equal(proc_scan_look(s, &u), 0);
	assert_int_equal(u.ticks, 91);
	/* Waited for: what the parent inherits is not counted twice. */
	remove_pid(3);
	stat_of(2, "sh", 1, 45, 1, 5, 1);
	assert_int_equal(proc_scan_look(s, &u), 0);
	assert_int_equal(u.ticks, 91);
	stat_of(2, "sh", 1, 200, 1, 5, 1);
	assert_int_equal(proc_scan_look(s, &u), 0);
	assert_int_equal(u.ticks, 201);
	proc_scan_free(s);
}

static void test_memory(void **state)
{
	static const char text[] = "00400000-7ffd [rollup]\nRss: 100 kB\nPss: 90 kB\n"
				   "Pss_Anon: 30 kB\nPss_File: 50 kB\nPss_Shmem: 10 kB\n"
				   "Anonymous: 70 kB\nSwapPss: 5 kB\n";
	struct proc_scan *s;

	(void)state;
	stat_of(1, "init", 0, 0, 1, 1, 1000);
	stat_of(2, "sh", 1, 0, 1, 5, 10);
	put("2/smaps_rollup", text, strlen(text));
	stat_of(3, "gone", 1, 0, 1, 5, 10);
	s = fake_proc();
	assert_int_equal(proc_scan_memory(s, 0), 45 * 1024);
	/* More in files than is mapped. */
	assert_int_equal(proc_scan_memory(s, 1 << 20), (1 << 20) + 35 * 1024);
	proc_scan_free(s);
}

/* The real one: a child of ours that holds memory is seen. */
static void test_memory_for_real(void **state)
{
	enum { BYTES = 24 << 20 };
	int fds[2], root = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct proc_scan *s = proc_scan_new(root);
	struct proc_use u;
	uint64_t after;
	pid_t pid;
	char c;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(p, 1, BYTES);
		if (write(fds[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &c, 1), 1);
	assert_int_equal(proc_scan_look(s, &u), 0);
	assert_true(u.rss >= BYTES);
	after = proc_scan_memory(s, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	proc_scan_free(s);
	/* Others come and go meanwhile, large ones, too: what there was before says nothing. */
	assert_true(after > BYTES / 2);
}

static void test_cgroup_files(void **state)
{
	struct cgroup g = { .path = top, .memory = true, .pids = true };
	const struct run_limits l = { .memory = 1000, .pids = 10, .cpu_ms = 50 };
	struct limit_hit hit = { 0 };

	(void)state;
	g.dir = open(top, O_RDONLY | O_DIRECTORY);
	assert_false(cgroup_hit(&g, &l, &hit));
	put("cpu.stat", "usage_usec 49000\nuser_usec 1\n", 30);
	put("memory.events", "low 0\nhigh 0\nmax 4\noom 1\noom_kill 0\n", 37);
	put("pids.events", "max 0\n", 6);
	assert_false(cgroup_hit(&g, &l, &hit));
	put("cpu.stat", "usage_usec 51000\nuser_usec 1\n", 30);
	assert_true(cgroup_hit(&g, &l, &hit));
	assert_int_equal(hit.what, LIMIT_CPU);
	assert_int_equal(hit.used, 51);
	put("pids.events", "max 3\n", 6);
	assert_true(cgroup_hit(&g, &l, &hit));
	assert_int_equal(hit.what, LIMIT_PIDS);
	put("memory.events", "low 0\nhigh 0\nmax 4\noom 1\noom_kill 2\n", 37);
	assert_true(cgroup_hit(&g, &l, &hit));
	assert_int_equal(hit.what, LIMIT_MEMORY);
	/* What it does not limit is not its to tell. */
	g.memory = g.pids = false;
	assert_true(cgroup_hit(&g, &l, &hit));
	assert_int_equal(hit.what, LIMIT_CPU);
	close(g.dir);
}

static void test_last_look(void **state)
{
	AUTO_FREE char *data = xcalloc(1, (1 << 20) + 2);
	char *dirs[] = { top };
	const struct watch_dirs wd = { dirs, 1 };
	const struct cgroup none = { .dir = -1 };
	struct run_limits l = { .disk = 2 << 20 };
	struct limit_hit hit = { 0 };
	struct watch *w;

	(void)state;
	memset(data, 'x', 1 << 20);
	put("a", data, 1 << 20);
	w = watch_new(&l, &none, &wd);
	assert_false(watch_last(w, &hit));
	put("b", data, 1 << 20);
	put("c", data, 1 << 20);
	assert_true(watch_last(w, &hit));
	assert_int_equal(hit.what, LIMIT_DISK);
	watch_free(w);
	/* A file of the allowed size is allowed; one byte more is where the kernel stops. */
	l = (struct run_limits){ .file = 1 << 20 };
	w = watch_new(&l, &none, &wd);
	assert_false(watch_last(w, &hit));
	put("d", data, (1 << 20) + 2); /* larger from the start */
	assert_false(watch_last(w, &hit));
	put("e", data, (1 << 20) + 1);
	assert_true(watch_last(w, &hit));
	assert_int_equal(hit.what, LIMIT_FILE);
	watch_free(w);
	l = (struct run_limits){ .wall_ms = 5, .output = 5 };
	assert_null(watch_new(&l, &none, &wd));
}

/* Closed by its owner: a process of its own looks, ours keeps its rights. */
static void test_last_look_into_closed(void **state)
{
	AUTO_FREE char *data = xcalloc(1, 1 << 20), *d = xasprintf("%s/d", top);
	char *dirs[] = { top };
	const struct watch_dirs wd = { dirs, 1 };
	const struct cgroup none = { .dir = -1 };
	const struct run_limits l = { .disk = 1 << 19 };
	struct limit_hit hit = { 0 };
	struct watch *w;

	(void)state;
	make("d");
	memset(data, 'x', 1 << 20);
	put("d/a", data, 1 << 20);
	assert_int_equal(chmod(d, 0), 0);
	w = watch_new(&l, &none, &wd);
	assert_true(watch_last(w, &hit));
	assert_int_equal(hit.what, LIMIT_DISK);
	assert_in_range(hit.used, 1 << 20, 2 << 20);
	watch_free(w);
	assert_int_equal(chmod(d, 0700), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_disk_counts_once),
		TEST(test_disk_follows_nothing),
		TEST(test_disk_cut),
		TEST(test_disk_unreadable),
		TEST(test_processes_are_counted),
		TEST(test_time_of_the_dead_counts),
		TEST(test_memory),
		TEST(test_memory_for_real),
		TEST(test_cgroup_files),
		TEST(test_last_look),
		TEST(test_last_look_into_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
