/* SPDX-License-Identifier: Apache-2.0 */
#include "change_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * A real overlay, random operations, and two answers to "what changed?": ours, from the
 * upper, and a plain recursive comparison of the merged view with the host's tree.
 */
enum { SEEDS = 12, OPS = 240, CHECK_EVERY = 40, NAMES = 7 };

static uint64_t seed;

static unsigned rnd(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* Most operations fail at random; what matters is what they leave. */
static void try(int r)
{
	(void)r;
}

static const char *const names[NAMES] = { "a", "b", "c d", "e\n", "f\xff", "g", "sub" };

static void random_path(char *out, size_t size, const char *top)
{
	unsigned depth = 1 + rnd(3), i;
	int n = snprintf(out, size, "%s", top);

	for (i = 0; i < depth; i++)
		n += snprintf(out + n, size - (size_t)n, "/%s", names[rnd(NAMES)]);
}

static void write_random(const char *path, int flags)
{
	static const char *const texts[] = { "same\n", "diff\n", "longer text\n", "" };
	const char *t = texts[rnd(4)];
	int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0644);
	struct stat st;

	if (fd < 0)
		return;
	/* Most results are among a few contents and times, so that some come back. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		struct timespec ts[2] = { { 1000000, 0 }, { 1000000, 0 } };

		if (write(fd, t, strlen(t)) < 0)
			abort();
		if (rnd(4))
			futimens(fd, ts);
	}
	close(fd);
}

static void populate(const char *top)
{
	char path[256];
	int i;

	for (i = 0; i < 60; i++) {
		random_path(path, sizeof(path), top);
		switch (rnd(5)) {
		case 0:
		case 1:
			try(mkdir(path, 0755));
			break;
		case 2:
			if (symlink(rnd(2) ? "a" : "/nonexistent/x", path) == 0)
				set_mtime(AT_FDCWD, path, 1000000);
			break;
		default:
			write_random(path, O_WRONLY | O_CREAT | O_TRUNC);
			break;
		}
	}
}

static void remove_tree(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *de;

	while (d && (de = readdir(d))) {
		AUTO_FREE char *child = xasprintf("%s/%s", path, de->d_name);

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		if (unlink(child) < 0)
			remove_tree(child);
	}
	if (d)
		closedir(d);
	try(rmdir(path));
}

static void operate(const char *top)
{
	static const char *const attrs[] = { "user.a", "user.b", "user.overlay.x" };
	char path[256], other[256];
	int fd;

	random_path(path, sizeof(path), top);
	random_path(other, sizeof(other), top);
	switch (rnd(16)) {
	case 0:
	case 1:
		write_random(path, O_WRONLY | O_CREAT | O_TRUNC);
		break;
	case 2:
		write_random(path, O_WRONLY | O_APPEND);
		break;
	case 3: /* copied up, nothing changed */
		fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0)
			close(fd);
		break;
	case 4:
		try(unlink(path));
		break;
	case 5:
	case 6:
		try(mkdir(path, 0755));
		break;
	case 7:
		remove_tree(path);
		break;
	case 8: /* removed and made again: opaque */
		remove_tree(path);
		try(mkdir(path, 0755));
		break;
	case 9:
	case 10:
		try(rename(path, other));
		break;
	case 11:
		if (symlink(rnd(2) ? "a" : "/nonexistent/x", path) == 0)
			set_mtime(AT_FDCWD, path, 1000000);
		break;
	case 12:
		try(fchmodat(AT_FDCWD, path, rnd(2) ? 0755 : 0700, 0));
		break;
	case 13:
		try(lsetxattr(path, attrs[rnd(3)], rnd(2) ? "1" : "2", 1, 0));
		break;
	case 14:
		try(lremovexattr(path, attrs[rnd(3)]));
		try(link(path, other));
		break;
	default:
		try(mkfifo(path, 0644));
		break;
	}
}

/* The plain comparison. Words as walk_words() makes them, in a list to be sorted. */
struct words {
	char **v;
	size_t n;
};

static void add(struct words *w, char *word)
{
	char *p;

	for (p = word; *p; p++)
		if (*p <= 0x20 || *p >= 0x7f)
			*p = '?';
	w->v = xrealloc(w->v, (w->n + 1) * sizeof(*w->v));
	w->v[w->n++] = word;
}

static bool same_bytes(const char *a, const char *b)
{
	char x[4096], y[4096];
	int fa = open(a, O_RDONLY), fb = open(b, O_RDONLY);
	ssize_t n = read(fa, x, sizeof(x)), m = read(fb, y, sizeof(y));

	assert_true(n >= 0 && m >= 0);
	close(fa);
	close(fb);
	return n == m && !memcmp(x, y, (size_t)n);
}

static bool same_target(const char *a, const char *b)
{
	char x[256], y[256];
	ssize_t n = readlink(a, x, sizeof(x)), m = readlink(b, y, sizeof(y));

	assert_true(n > 0 && m > 0);
	return n == m && !memcmp(x, y, (size_t)n);
}

static bool same_attrs(const char *a, const char *b)
{
	static const char *const attrs[] = { "user.a", "user.b", "user.overlay.x" };
	size_t i;

	for (i = 0; i < 3; i++) {
		char x[8], y[8];
		ssize_t n = lgetxattr(a, attrs[i], x, sizeof(x));
		ssize_t m = lgetxattr(b, attrs[i], y, sizeof(y));

		if (n != m || (n > 0 && memcmp(x, y, (size_t)n) != 0))
			return false;
	}
	return true;
}

static void model_pair(struct words *w, const char *rel, const char *host,
		       const struct stat *hs, const char *merged, const struct stat *ms)
{
	char what[8];
	size_t n = 0;

	if ((S_ISREG(hs->st_mode) && !same_bytes(host, merged)) ||
	    (S_ISLNK(hs->st_mode) && !same_target(host, merged)))
		what[n++] = 'c';
	if (hs->st_mode != ms->st_mode)
		what[n++] = 'm';
	if (!S_ISLNK(hs->st_mode) && !same_attrs(host, merged))
		what[n++] = 'x';
	if (!S_ISDIR(hs->st_mode) && (hs->st_mtim.tv_sec != ms->st_mtim.tv_sec ||
				      hs->st_mtim.tv_nsec != ms->st_mtim.tv_nsec))
		what[n++] = 't';
	what[n] = '\0';
	if (n)
		add(w, xasprintf("M%s:%s", rel, what));
}

static void model(struct words *w, const char *host_top, const char *merged_top,
		  const char *rel, bool implied);

static void model_one(struct words *w, const char *host_top, const char *merged_top,
		      const char *rel, bool implied)
{
	AUTO_FREE char *host = xasprintf("%s/%s", host_top, rel);
	AUTO_FREE char *merged = xasprintf("%s/%s", merged_top, rel);
	struct stat hs = { 0 }, ms = { 0 };
	bool h, m, same;

	h = lstat(host, &hs) == 0;
	m = lstat(merged, &ms) == 0;
	same = h && m && (hs.st_mode & S_IFMT) == (ms.st_mode & S_IFMT);
	if (same)
		model_pair(w, rel, host, &hs, merged, &ms);
	else
		add(w, xasprintf("%c%s%s",
				 h && m ? 'T'
				 : h	? 'D'
					: 'A',
				 rel, implied ? "*" : ""));
	if (same && S_ISDIR(hs.st_mode))
		model(w, host_top, merged_top, rel, false);
	else if (h && S_ISDIR(hs.st_mode))
		model(w, host_top, "/nonexistent", rel, true);
	else if (m && S_ISDIR(ms.st_mode))
		model(w, "/nonexistent", merged_top, rel, true);
}

static void model(struct words *w, const char *host_top, const char *merged_top,
		  const char *rel, bool implied)
{
	const char *const tops[] = { host_top, merged_top };
	struct stat st;
	int side;

	for (side = 0; side < 2; side++) {
		AUTO_FREE char *path = xasprintf("%s/%s", tops[side], rel);
		DIR *d = opendir(path);
		struct dirent *de;

		while (d && (de = readdir(d))) {
			AUTO_FREE char *in_host = xasprintf("%s/%s/%s", host_top, rel,
							    de->d_name);
			AUTO_FREE char *child = xasprintf("%s%s%s", rel, *rel ? "/" : "",
							  de->d_name);

			if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
				continue;
			if (side == 1 && lstat(in_host, &st) == 0)
				continue; /* seen on the host's side */
			model_one(w, host_top, merged_top, child, implied);
		}
		if (d)
			closedir(d);
	}
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join_sorted(struct words *w)
{
	struct buf b = BUF_INIT;
	size_t i;

	qsort(w->v, w->n, sizeof(*w->v), by_bytes);
	for (i = 0; i < w->n; i++) {
		buf_adds(&b, w->v[i]);
		buf_addc(&b, '\n');
		free(w->v[i]);
	}
	free(w->v);
	buf_adds(&b, "");
	return buf_take(&b);
}

static char *ours(const struct fixture *f)
{
	char *line = walk_words(&f->layer, 1), *save = NULL, *p;
	struct words w = { 0 };

	for (p = strtok_r(line, " ", &save); p; p = strtok_r(NULL, " ", &save))
		add(&w, xstrdup(p));
	free(line);
	return join_sorted(&w);
}

static char *theirs(const struct fixture *f, const char *merged)
{
	struct words w = { 0 };

	model(&w, f->host, merged, "", false);
	return join_sorted(&w);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(77);
	close(fd);
}

/* A namespace where we may mount. Exits with 77 where the machine does not allow it. */
static void enter_namespace(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(77);
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	write_file("/proc/self/gid_map", map);
}

static int in_overlay(struct fixture *f, uint64_t s)
{
	char merged[96], work[96], opts[512];
	int i, changes = 0;

	enter_namespace();
	snprintf(merged, sizeof(merged), "%s/merged", f->dir);
	snprintf(work, sizeof(work), "%s/work", f->dir);
	if (mkdir(merged, 0755) < 0 || mkdir(work, 0755) < 0)
		return 1;
	seed = s;
	populate(f->host);
	snprintf(opts, sizeof(opts),
		 "lowerdir=%s,upperdir=%s,workdir=%s,userxattr,volatile", f->host,
		 f->upper, work);
	if (mount("overlay", merged, "overlay", 0, opts) < 0)
		return errno == EPERM || errno == ENODEV ? 77 : 1;
	for (i = 1; i <= OPS; i++) {
		char *a, *b;

		operate(merged);
		if (i % CHECK_EVERY)
			continue;
		a = ours(f);
		b = theirs(f, merged);
		if (strcmp(a, b) != 0) {
			fprintf(stderr,
				"seed %d, after %d operations\nwalk:\n%smodel:\n%s",
				(int)s, i, a, b);
			return 2;
		}
		changes += a[0] != '\0';
		free(a);
		free(b);
	}
	/* A comparison of nothing with nothing proves nothing. */
	return changes > 3 ? 0 : 3;
}

static void test_walk_agrees_with_the_merged_view(void **state)
{
	int s;

	(void)state;
	for (s = 1; s <= SEEDS; s++) {
		void *one;
		int status;
		pid_t pid;

		fixture_setup(&one);
		pid = fork();
		if (pid == 0)
			_exit(in_overlay(one, (uint64_t)s));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		fixture_teardown(&one);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip(); /* no user namespaces, or no overlays in them */
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk_agrees_with_the_merged_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
