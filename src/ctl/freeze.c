/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/freeze.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

/*
 * A process that does not stop waits for a disk, or is held by the kernel. A process that has
 * been sent a signal and still sleeps gets another one after this many passes.
 */
enum { LIMIT_MS = 3000, PAUSE_NS = 30000, AGAIN = 64 };

struct proc {
	pid_t pid, ppid;
	char state;
	long threads;
	bool ours; /* a helper of PID 1's: it ends by itself */
	bool settled;
};

struct procs {
	struct proc *v;
	size_t n, cap;
};

static bool read_text(const char *path, char *out, size_t len)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, len - 1);

	if (n <= 0)
		return false;
	out[n] = '\0';
	return true;
}

/* Reads what follows the name, which may hold anything: "state ppid …". */
static bool read_stat(const char *path, char *state, pid_t *ppid, long *threads)
{
	char text[1024];
	const char *p;
	int parent;

	if (!read_text(path, text, sizeof(text)) || !(p = strrchr(text, ')')))
		return false;
	if (sscanf(p + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
		   "%*d %ld",
		   state, &parent, threads) != 3)
		return false;
	*ppid = parent;
	return true;
}

void helpers_add(struct helpers *h, pid_t pid, uint64_t call)
{
	if (h->n == h->cap) {
		h->cap = h->cap ? 2 * h->cap : 8;
		h->v = xrealloc(h->v, h->cap * sizeof(*h->v));
	}
	h->v[h->n++] = (struct helper){ pid, call };
}

uint64_t helpers_remove(struct helpers *h, pid_t pid)
{
	uint64_t call = 0;

	for (size_t i = 0; i < h->n; i++)
		if (h->v[i].pid == pid) {
			call = h->v[i].call;
			h->v[i--] = h->v[--h->n];
		}
	return call;
}

bool helpers_has(const struct helpers *h, pid_t pid)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->v[i].pid == pid)
			return true;
	return false;
}

/*
 * Is the task in the kernel until we or a stopped process let it go on (a vfork, or an exec
 * that is held or under way)? It writes nothing meanwhile. A task that renames does not count:
 * it is on its way, or waits for a helper, and until we have heard of it a signal stops it.
 */
static bool is_held(const char *task)
{
	char path[128], text[128];
	long nr;

	snprintf(path, sizeof(path), "%s/syscall", task);
	if (!read_text(path, text, sizeof(text)) || sscanf(text, "%ld", &nr) != 1)
		return false;
	switch (nr) {
#ifdef SYS_vfork
	case SYS_vfork:
#endif
	case SYS_clone:
	case SYS_clone3:
	case SYS_execve:
	case SYS_execveat:
		return true;
	default:
		return false;
	}
}

static bool state_settled(char state, const char *task)
{
	return strchr("TtZXx", state) || (state == 'D' && is_held(task));
}

/* Has every thread of the process stopped, or is the process gone? */
static bool settled(pid_t pid)
{
	char path[64], task[96], stat_path[128], state;
	AUTO_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	long threads;
	pid_t ppid;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_stat(path, &state, &ppid, &threads))
		return true;
	snprintf(task, sizeof(task), "/proc/%d", (int)pid);
	if (!state_settled(state, task))
		return false;
	if (threads <= 1)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && (de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(task, sizeof(task), "/proc/%d/task/%.20s", (int)pid, de->d_name);
		snprintf(stat_path, sizeof(stat_path), "%s/stat", task);
		if (read_stat(stat_path, &state, &ppid, &threads) &&
		    !state_settled(state, task))
			return false;
	}
	return true;
}

static void list(struct procs *p)
{
	AUTO_CLOSEDIR DIR *d = opendir("/proc");
	struct dirent *de;

	p->n = 0;
	while (d && (de = readdir(d))) {
		struct proc x = { .pid = atoi(de->d_name) };
		char path[64];

		if (x.pid <= 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)x.pid);
		if (!read_stat(path, &x.state, &x.ppid, &x.threads))
			continue;
		if (p->n == p->cap) {
			p->cap = p->cap ? 2 * p->cap : 64;
			p->v = xrealloc(p->v, p->cap * sizeof(*p->v));
		}
		p->v[p->n++] = x;
	}
}

/* The first thread of a process may end before the others. */
static bool is_over(const struct proc *x)
{
	return strchr("ZXx", x->state) && x->threads <= 1;
}

static const struct proc *find(const struct procs *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].pid == pid)
			return &p->v[i];
	return NULL;
}

bool freeze_has(const struct freeze *f, pid_t pid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i] == pid)
			return true;
	return false;
}

static void remember(struct freeze *f, pid_t pid)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? 2 * f->cap : 64;
		f->v = xrealloc(f->v, f->cap * sizeof(*f->v));
	}
	f->v[f->n++] = pid;
}

/*
 * One pass: signals the processes whose parents are settled. True: everything has stopped.
 * @again: signals processes again that were signalled before, since a daemon whose threads
 * come and go (gpg-agent) was seen not to stop. SIGCONT takes a second signal away with the
 * first.
 */
static bool pass(struct freeze *f, struct procs *p, const struct helpers *helpers,
		 bool again)
{
	bool all = true;

	list(p);
	for (size_t i = 0; i < p->n; i++) {
		struct proc *x = &p->v[i];

		if (is_over(x)) {
			x->settled = true;
			continue;
		}
		if (helpers_has(helpers, x->pid)) {
			x->ours = true;
			all = false; /* renames for somebody: soon done */
			continue;
		}
		/* The process was stopped before, and stays so. */
		x->settled = (freeze_has(f, x->pid) || strchr("Tt", x->state)) &&
			     settled(x->pid);
		all = all && x->settled;
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct proc *x = &p->v[i], *up = find(p, x->ppid);

		if (x->settled || x->ours || (up && !up->settled && !up->ours) ||
		    (freeze_has(f, x->pid) && !again))
			continue;
		if (kill(x->pid, SIGSTOP) == 0 && !freeze_has(f, x->pid))
			remember(f, x->pid);
	}
	return all;
}

int freeze_all(struct freeze *f, const struct helpers *helpers)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int64_t end = clock_ms(CLOCK_MONOTONIC) + LIMIT_MS;
	struct procs p = { 0 };
	bool done = false;

	*f = (struct freeze){ 0 };
	for (unsigned i = 1; !done && clock_ms(CLOCK_MONOTONIC) < end; i++) {
		done = pass(f, &p, helpers, i % AGAIN == 0);
		if (!done)
			nanosleep(&pause, NULL);
	}
	free(p.v);
	if (done)
		return 0;
	freeze_thaw(f);
	return -ETIMEDOUT;
}

void freeze_thaw(struct freeze *f)
{
	while (f->n)
		kill(f->v[--f->n], SIGCONT);
	free(f->v);
	*f = (struct freeze){ 0 };
}

void freeze_kill_others(pid_t child, const struct helpers *helpers)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS * 10 };
	int64_t end = clock_ms(CLOCK_MONOTONIC) + LIMIT_MS;
	struct procs p = { 0 };
	bool any = true;

	while (any && clock_ms(CLOCK_MONOTONIC) < end) {
		any = false;
		list(&p);
		for (size_t i = 0; i < p.n; i++) {
			if (p.v[i].pid == child || is_over(&p.v[i]) ||
			    helpers_has(helpers, p.v[i].pid))
				continue;
			kill(p.v[i].pid, SIGKILL);
			any = true;
		}
		if (any)
			nanosleep(&pause, NULL);
	}
	free(p.v);
}

/* --- has anybody run? --- */

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

/*
 * Mixes one thread into the number: the time for which it has run, which is updated when it
 * leaves the processor and at every tick, and how often it was given a processor, which is
 * counted at once.
 */
static bool mix_task(int tasks, const char *tid, uint64_t *h)
{
	AUTO_FREE char *name = xasprintf("%s/schedstat", tid);
	AUTO_CLOSE int fd = openat(tasks, name, O_RDONLY | O_CLOEXEC);
	unsigned long long ran, waited, times;
	char text[128];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	/* A kernel that does not count these says 0. */
	if (sscanf(text, "%llu %llu %llu", &ran, &waited, &times) != 3 || !times)
		return false;
	*h = mix(mix(mix(*h, strtoull(tid, NULL, 10)), ran), times);
	return true;
}

static bool mix_process(const char *pid, uint64_t *h)
{
	AUTO_FREE char *path = xasprintf("/proc/%s/task", pid);
	AUTO_CLOSEDIR DIR *d = opendir(path);
	struct dirent *de;

	while (d && (de = readdir(d)))
		if (de->d_name[0] != '.' && !mix_task(dirfd(d), de->d_name, h))
			return false;
	return d;
}

uint64_t freeze_still(void)
{
	AUTO_CLOSEDIR DIR *d = opendir("/proc");
	uint64_t h = 1;
	struct dirent *de;
	char text[32];

	/* Asynchronous writes that the kernel has accepted are done by no process. */
	if (!d || !read_text("/proc/sys/fs/aio-nr", text, sizeof(text)) ||
	    strtoull(text, NULL, 10) != 0)
		return 0;
	while ((de = readdir(d)))
		if (de->d_name[0] >= '1' && de->d_name[0] <= '9' &&
		    strcmp(de->d_name, "1") != 0 && !mix_process(de->d_name, &h))
			return 0;
	return h ? h : 1;
}

/* The kernel writes a newline in a name as "\012". */
static void add_mapped(struct buf *b, const char *name)
{
	buf_addc(b, FREEZE_MAPPED);
	for (; *name && *name != '\n'; name++) {
		if (strncmp(name, "\\012", 4) == 0) {
			buf_addc(b, '\n');
			name += 3;
		} else {
			buf_addc(b, *name);
		}
	}
	buf_addc(b, '\0');
}

static void add_maps(const char *task, struct buf *b)
{
	AUTO_FREE char *path = xasprintf("%s/maps", task), *line = NULL;
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	char perms[8];
	size_t cap = 0;
	int at;

	while (f && getline(&line, &cap, f) > 0) {
		at = 0;
		if (sscanf(line, "%*s %7s %*s %*s %*s %n", perms, &at) < 1 || !at)
			continue;
		if (perms[1] == 'w' && perms[3] == 's' && line[at] == '/' &&
		    strncmp(line + at, "/dev/", 5) != 0 &&
		    strncmp(line + at, "/memfd:", 7) != 0)
			add_mapped(b, line + at);
	}
}

/* The mode of the link says how the descriptor was opened. */
static void add_open(const char *task, struct buf *b)
{
	AUTO_FREE char *path = xasprintf("%s/fd", task);
	AUTO_CLOSEDIR DIR *d = opendir(path);
	struct dirent *de;
	char name[PATH_MAX];
	struct stat st;
	ssize_t n;

	while (d && (de = readdir(d))) {
		if (fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISLNK(st.st_mode) || !(st.st_mode & S_IWUSR))
			continue;
		n = readlinkat(dirfd(d), de->d_name, name, sizeof(name) - 1);
		if (n <= 0 || name[0] != '/' || strncmp(name, "/dev/", 5) == 0)
			continue;
		name[n] = '\0';
		buf_addc(b, FREEZE_OPEN);
		buf_add(b, name, (size_t)n + 1);
	}
}

/* All threads of a process have the same files, unless the first one has ended. */
static void add_process(const struct proc *x, struct buf *b)
{
	AUTO_FREE char *path = xasprintf("/proc/%d", (int)x->pid), *tasks = NULL;
	AUTO_CLOSEDIR DIR *d = NULL;
	struct dirent *de;

	if (!strchr("ZXx", x->state)) {
		add_maps(path, b);
		add_open(path, b);
		return;
	}
	tasks = xasprintf("%s/task", path);
	d = opendir(tasks);
	while (d && (de = readdir(d))) {
		AUTO_FREE char *task = xasprintf("%s/%s", tasks, de->d_name);

		if (de->d_name[0] == '.')
			continue;
		add_maps(task, b);
		add_open(task, b);
	}
}

int freeze_written(void)
{
	AUTO_CLOSE int fd = memfd_create("written", MFD_CLOEXEC);
	AUTO_BUF struct buf b = BUF_INIT;
	struct procs p = { 0 };

	if (fd < 0)
		return -errno;
	list(&p);
	for (size_t i = 0; i < p.n; i++)
		if (!is_over(&p.v[i]))
			add_process(&p.v[i], &b);
	free(p.v);
	if (b.len && write(fd, b.data, b.len) != (ssize_t)b.len)
		return -EIO;
	return TAKE_FD(fd);
}
