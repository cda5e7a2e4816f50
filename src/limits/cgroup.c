/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "limits/cgroup.h"
#include "limits/limit.h"
#include "sys/mountinfo.h"

#define PREFIX "stet-"

static ssize_t slurp(int dir, const char *name, char *text, size_t len)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, len - 1);

	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* Is @word one of the words of @text? */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || p[-1] == ' ') && strchr(" \n", p[n]))
			return true;
	return false;
}

/* The number after @key at the beginning of a line; -1 if there is none. */
static int64_t number_at(int dir, const char *file, const char *key)
{
	char text[1024], *p = text;
	size_t n = strlen(key);

	if (slurp(dir, file, text, sizeof(text)) <= 0)
		return -1;
	for (; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
		if (strncmp(p, key, n) == 0 && p[n] == ' ')
			return strtoll(p + n + 1, NULL, 10);
	return -1;
}

/* Our own cgroup's directory, as text; *top gets the length of the mount point. */
static bool own_directory(struct buf *path, size_t *top)
{
	AUTO_FREE char *line = NULL;
	AUTO_FCLOSE FILE *f = fopen("/proc/self/cgroup", "re");
	struct mountinfo mi;
	size_t cap = 0;
	bool found = false;

	if (!f || mountinfo_read(&mi) < 0)
		return false;
	while (!found && getline(&line, &cap, f) > 0) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < mi.n && !found; i++) {
			if (strcmp(mi.v[i].fstype, "cgroup2") != 0 ||
			    strcmp(mi.v[i].root, "/") != 0)
				continue;
			buf_adds(path, mi.v[i].target);
			*top = path->len;
			if (line[4])
				buf_adds(path, line + 3);
			found = true;
		}
	}
	mountinfo_free(&mi);
	return found;
}

/* May children be made in this one, and processes be moved into them? */
static int open_usable(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || faccessat(fd, ".", W_OK, AT_EACCESS) < 0 ||
	    faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return -1;
	return TAKE_FD(fd);
}

/*
 * The nearest one above us that is ours to divide. What it hands on to its children is left
 * as it is: switching a controller on would change how the host's other processes are
 * treated.
 */
bool cgroup_place(struct buf *path, bool *memory, bool *pids)
{
	AUTO_BUF struct buf first = BUF_INIT;
	char text[256];
	size_t top = 0;
	bool any = false;

	*memory = *pids = false;
	if (!own_directory(path, &top))
		return false;
	for (;;) {
		AUTO_CLOSE int fd = open_usable(buf_str(path));

		if (fd < 0)
			break;
		slurp(fd, "cgroup.subtree_control", text, sizeof(text));
		*memory = has_word(text, "memory");
		*pids = has_word(text, "pids");
		if (*memory || *pids)
			return true;
		if (!any)
			buf_adds(&first, buf_str(path));
		any = true;
		if (path->len <= top)
			break;
		buf_truncate(path, (size_t)(strrchr(buf_str(path), '/') - buf_str(path)));
	}
	buf_reset(path);
	buf_adds(path, buf_str(&first));
	return any;
}

/* Removes cgroups that a killed stet has left: empty ones whose maker is gone. */
static void sweep(const char *place)
{
	AUTO_CLOSEDIR DIR *d = opendir(place);
	struct dirent *de;

	while (d && (de = readdir(d))) {
		int pid = strncmp(de->d_name, PREFIX, strlen(PREFIX)) == 0
				  ? atoi(de->d_name + strlen(PREFIX))
				  : 0;

		if (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
			unlinkat(dirfd(d), de->d_name, AT_REMOVEDIR);
	}
}

static int put(int dir, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static void set_limits(const struct run_limits *l, struct cgroup *g)
{
	char text[32];

	if (g->memory && l->memory) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)l->memory);
		put(g->dir, "memory.swap.max", "0");
		put(g->dir, "memory.oom.group", "1");
		g->memory = put(g->dir, "memory.max", text) == 0;
	}
	if (g->pids && l->pids) {
		/* Beside those of the command: PID 1, and a child of it now and then. */
		snprintf(text, sizeof(text), "%lld", (long long)l->pids + 2);
		g->pids = put(g->dir, "pids.max", text) == 0;
	}
}

void cgroup_make(const struct run_limits *l, struct cgroup *g)
{
	AUTO_BUF struct buf place = BUF_INIT;
	struct timespec now;

	*g = (struct cgroup){ .dir = -1 };
	if (!l->memory && !l->pids && !l->cpu_ms)
		return;
	if (!cgroup_place(&place, &g->memory, &g->pids))
		return;
	if (!l->cpu_ms && !(l->memory && g->memory) && !(l->pids && g->pids))
		return;
	sweep(buf_str(&place));
	clock_gettime(CLOCK_MONOTONIC, &now);
	g->path = xasprintf("%s/" PREFIX "%d-%lx", buf_str(&place), (int)getpid(),
			    (unsigned long)now.tv_nsec);
	if (mkdir(g->path, 0700) == 0)
		g->dir = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->dir < 0) {
		cgroup_remove(g);
		return;
	}
	set_limits(l, g);
	log_debug("cgroup %s", g->path);
}

bool cgroup_hit(const struct cgroup *g, const struct run_limits *l, struct limit_hit *hit)
{
	int64_t ms;

	if (!g->path)
		return false;
	if (g->memory && l->memory && number_at(g->dir, "memory.events", "oom_kill") > 0)
		*hit = (struct limit_hit){ LIMIT_MEMORY, l->memory, l->memory };
	else if (g->pids && l->pids && number_at(g->dir, "pids.events", "max") > 0)
		*hit = (struct limit_hit){ LIMIT_PIDS, (uint64_t)l->pids + 1,
					   (uint64_t)l->pids };
	else if (l->cpu_ms && (ms = cgroup_cpu_ms(g)) > l->cpu_ms)
		*hit = (struct limit_hit){ LIMIT_CPU, (uint64_t)ms, (uint64_t)l->cpu_ms };
	else
		return false;
	return true;
}

int64_t cgroup_cpu_ms(const struct cgroup *g)
{
	int64_t us = number_at(g->dir, "cpu.stat", "usage_usec");

	return us < 0 ? us : us / 1000;
}

void cgroup_remove(struct cgroup *g)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	cleanup_close(&g->dir);
	/* The last process is reaped, but may not have left it yet. */
	for (int i = 0; g->path && rmdir(g->path) < 0 && errno == EBUSY && i < 50; i++)
		nanosleep(&pause, NULL);
	free(g->path);
	*g = (struct cgroup){ .dir = -1 };
}
