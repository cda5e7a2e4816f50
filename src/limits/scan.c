/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "limits/limit.h"
#include "limits/scan.h"

/* --- processes --- */

/* A process at the last look; in ascending order of pid. */
struct seen {
	int pid;
	uint64_t start, ticks;
};

struct proc_scan {
	DIR *dir;
	struct seen *old, *new;
	size_t nold, nnew, cap_old, cap_new;
	/*
	 * Two measures, each blind to something. What was seen of every process misses what
	 * dies between two looks; what parents have inherited from children that they waited
	 * for misses children that nobody waits for. The larger one counts.
	 */
	uint64_t live, tree;
};

struct proc_scan *proc_scan_new(int proc)
{
	struct proc_scan *s = xcalloc(1, sizeof(*s));

	s->dir = fdopendir(proc);
	if (s->dir)
		return s;
	close(proc);
	free(s);
	return NULL;
}

void proc_scan_free(struct proc_scan *s)
{
	if (!s)
		return;
	closedir(s->dir);
	free(s->old);
	free(s->new);
	free(s);
}

static ssize_t read_file(int dir, const char *pid, const char *name, char *text,
			 size_t len)
{
	char path[64];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", pid, name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, len - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

struct stat_line {
	uint64_t ticks, inherited, threads, start, rss;
};

/* The name in brackets is the process's own choice: fields begin after the last bracket. */
static bool parse_stat(const char *text, struct stat_line *l)
{
	const char *p = strrchr(text, ')');
	unsigned long long f[25] = { 0 };
	char *end;

	if (!p || p[1] != ' ' || !p[2])
		return false;
	p += 3; /* past the state, field 3 */
	for (int i = 4; i <= 24; i++) {
		f[i] = (unsigned long long)strtoll(p, &end, 10);
		if (end == p)
			return false;
		p = end;
	}
	*l = (struct stat_line){ .ticks = f[14] + f[15],
				 .inherited = f[16] + f[17],
				 .threads = f[20],
				 .start = f[22],
				 .rss = f[24] };
	return true;
}

static void note(struct proc_scan *s, int pid, const struct stat_line *l)
{
	if (s->nnew == s->cap_new) {
		s->cap_new = s->cap_new ? 2 * s->cap_new : 64;
		s->new = xrealloc(s->new, s->cap_new * sizeof(*s->new));
	}
	s->new[s->nnew++] = (struct seen){ pid, l->start, l->ticks };
}

static int by_pid(const void *a, const void *b)
{
	return ((const struct seen *)a)->pid - ((const struct seen *)b)->pid;
}

/* Adds what each has used since the last look. */
static void add_live(struct proc_scan *s)
{
	size_t k = 0;

	if (s->nnew) /* there may be no list yet, which qsort() must not be given */
		qsort(s->new, s->nnew, sizeof(*s->new), by_pid);
	for (size_t i = 0; i < s->nnew; i++) {
		const struct seen *p = &s->new[i];
		uint64_t before = 0;

		while (k < s->nold && s->old[k].pid < p->pid)
			k++;
		if (k < s->nold && s->old[k].pid == p->pid && s->old[k].start == p->start)
			before = s->old[k].ticks;
		s->live += p->ticks > before ? p->ticks - before : 0;
	}
}

static void swap_lists(struct proc_scan *s)
{
	struct seen *v = s->old;
	size_t cap = s->cap_old;

	s->old = s->new;
	s->nold = s->nnew;
	s->cap_old = s->cap_new;
	s->new = v;
	s->cap_new = cap;
	s->nnew = 0;
}

int proc_scan_look(struct proc_scan *s, struct proc_use *u)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), tree = 0;
	char text[1024];
	struct stat_line l;
	struct dirent *de;
	int pid;

	*u = (struct proc_use){ 0 };
	rewinddir(s->dir);
	while ((de = readdir(s->dir))) {
		pid = atoi(de->d_name);
		if (pid <= 0 ||
		    read_file(dirfd(s->dir), de->d_name, "stat", text, sizeof(text)) <=
			    0 ||
		    !parse_stat(text, &l))
			continue;
		tree += l.inherited;
		if (pid == 1)
			continue;
		tree += l.ticks;
		u->pids += l.threads;
		u->rss += l.rss * page;
		note(s, pid, &l);
	}
	add_live(s);
	swap_lists(s);
	if (tree > s->tree)
		s->tree = tree;
	u->ticks = s->tree > s->live ? s->tree : s->live;
	return u->pids ? 0 : -ESRCH;
}

static uint64_t field_kb(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? strtoull(p + strlen(name), NULL, 10) * 1024 : 0;
}

/* Pages of files can be given back at any time: they do not count. */
static uint64_t memory_of(int dir, const char *pid, uint64_t *shared)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[2048];
	struct stat_line l;
	ssize_t n = read_file(dir, pid, "smaps_rollup", text, sizeof(text));

	if (n > 0) {
		*shared += field_kb(text, "\nPss_Shmem:");
		return field_kb(text, "\nPss_Anon:") + field_kb(text, "\nSwapPss:");
	}
	if (n == 0 || n == -ENOENT || n == -ESRCH)
		return 0;
	/* The process cannot be looked at more closely: then all of it counts. */
	n = read_file(dir, pid, "stat", text, sizeof(text));
	return n > 0 && parse_stat(text, &l) ? l.rss * page : 0;
}

uint64_t proc_scan_memory(struct proc_scan *s, uint64_t files)
{
	struct dirent *de;
	uint64_t sum = 0, shared = 0;

	rewinddir(s->dir);
	while ((de = readdir(s->dir)))
		if (atoi(de->d_name) > 1)
			sum += memory_of(dirfd(s->dir), de->d_name, &shared);
	return sum + (shared > files ? shared : files);
}

/* --- disk --- */

enum { DEPTH_MAX = 6000 };

/* Files with several names, counted once: an open-addressed set of inode numbers. */
struct inode_set {
	uint64_t *v; /* 0: free */
	size_t n, cap;
};

static bool put(struct inode_set *s, uint64_t ino)
{
	size_t i = (ino * 0x9e3779b97f4a7c15ULL) & (s->cap - 1);

	while (s->v[i] && s->v[i] != ino)
		i = (i + 1) & (s->cap - 1);
	if (s->v[i] == ino)
		return false;
	s->v[i] = ino;
	s->n++;
	return true;
}

static bool first_name(struct inode_set *s, uint64_t ino)
{
	if (2 * s->n >= s->cap) {
		struct inode_set big = { .cap = s->cap ? 2 * s->cap : 64 };

		big.v = xcalloc(big.cap, sizeof(*big.v));
		for (size_t i = 0; i < s->cap; i++)
			if (s->v[i])
				put(&big, s->v[i]);
		free(s->v);
		*s = big;
	}
	return put(s, ino);
}

struct measure {
	struct disk_use *u;
	struct inode_set links;
	uint64_t max;
	int depth;
};

bool disk_is_full(const struct disk_use *u)
{
	return u->most && u->entries > u->most;
}

static void measure_dir(struct measure *m, int fd);

static void measure_entry(struct measure *m, int dir, const char *name)
{
	struct disk_use *u = m->u;
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	u->entries++;
	if (S_ISDIR(st.st_mode) || st.st_nlink < 2 ||
	    first_name(&m->links, st.st_ino ? st.st_ino : 1))
		u->bytes += (uint64_t)st.st_blocks * 512 + INODE_BYTES;
	if (S_ISREG(st.st_mode) && u->mark && (uint64_t)st.st_size == u->mark)
		u->marked = true;
	if (!S_ISDIR(st.st_mode))
		return;
	if (m->depth >= DEPTH_MAX) {
		u->cut = true;
		return;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		measure_dir(m, fd);
	else if (errno == EACCES || errno == EPERM)
		u->unreadable = true;
	else if (errno == EMFILE || errno == ENFILE)
		u->cut = true;
}

static void measure_dir(struct measure *m, int fd)
{
	AUTO_CLOSEDIR DIR *d = fdopendir(fd);
	struct dirent *de;

	if (!d) {
		close(fd);
		return;
	}
	m->depth++;
	while (!m->u->cut && !disk_is_full(m->u) && (de = readdir(d))) {
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		if (m->max && m->u->entries >= m->max)
			m->u->cut = true;
		else
			measure_entry(m, dirfd(d), de->d_name);
	}
	m->depth--;
}

void disk_measure(const char *path, uint64_t max, struct disk_use *u)
{
	struct measure m = { .u = u, .max = max };
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		measure_dir(&m, fd);
	else if (errno == EACCES)
		u->unreadable = true;
	free(m.links.v);
}

/* --- files without a name --- */

/* Files in memory have no name from the start; they are all on one mount of the kernel's. */
static dev_t memory_dev(void)
{
	AUTO_CLOSE int fd = memfd_create("stet", MFD_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_dev : 0;
}

struct nameless {
	struct disk_use *u;
	struct inode_set seen;
	dev_t memory;
};

/* No server is asked: one of the command's own could keep us waiting. */
static void look_at_open(struct nameless *n, int dir, const char *name)
{
	struct statx sx;
	dev_t dev;

	if (statx(dir, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
		  &sx) < 0 ||
	    sx.stx_nlink)
		return;
	dev = makedev(sx.stx_dev_major, sx.stx_dev_minor);
	if (dev == n->memory ||
	    !first_name(&n->seen, sx.stx_ino ^ (uint64_t)dev * 0x9e3779b97f4a7c15ULL))
		return;
	n->u->entries++;
	n->u->bytes += sx.stx_blocks * 512 + INODE_BYTES;
}

static DIR *open_below(int dir, const char *a, const char *b)
{
	char path[NAME_MAX + 16];
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", a, b);
	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

/* The open files of one thread: each thread may have a table of its own. */
static void look_at_table(struct nameless *n, int tasks, const char *tid)
{
	AUTO_CLOSEDIR DIR *d = open_below(tasks, tid, "fd");
	struct dirent *de;

	while (d && !disk_is_full(n->u) && (de = readdir(d)))
		if (de->d_name[0] != '.')
			look_at_open(n, dirfd(d), de->d_name);
}

void proc_scan_nameless(struct proc_scan *s, struct disk_use *u)
{
	struct nameless n = { .u = u, .memory = memory_dev() };
	struct dirent *de, *task;

	rewinddir(s->dir);
	while (!disk_is_full(u) && (de = readdir(s->dir))) {
		AUTO_CLOSEDIR DIR *tasks = NULL;

		if (atoi(de->d_name) > 1)
			tasks = open_below(dirfd(s->dir), de->d_name, "task");
		while (tasks && (task = readdir(tasks)))
			if (task->d_name[0] != '.')
				look_at_table(&n, dirfd(tasks), task->d_name);
	}
	free(n.seen.v);
}
