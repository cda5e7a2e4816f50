/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/operand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sys/callpath.h"

/* At most this many directories of a path may not exist yet. */
enum { UNMADE_MAX = 16 };

static bool may_look(struct operands *o)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC_COARSE);

	if (!o->until)
		o->until = now + OPERANDS_MS;
	if (++o->looks > OPERANDS_MAX || now > o->until)
		o->exhausted = true;
	return !o->exhausted;
}

/* The path of an open descriptor. Files without a name have none. */
static bool text_of(int fd, char out[PATH_MAX])
{
	char name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, out, PATH_MAX);
	if (n <= 0 || n == PATH_MAX || out[0] != '/')
		return false;
	out[n] = '\0';
	return true;
}

void operands_begin(struct operands *o, pid_t pid)
{
	o->pid = pid;
	o->looks = 0;
	o->until = 0;
	o->exhausted = false;
	o->fd = -1;
}

void operands_end(struct operands *o)
{
	cleanup_close(&o->fd);
	o->fd = -1;
}

/* Opens the path; a descriptor, or -errno. */
static int find(struct operands *o, const char *path, int flags, char out[PATH_MAX])
{
	struct callpath p;
	int fd;

	if (!may_look(o))
		return -ETIME;
	fd = callpath_start(&p, o->pid, AT_FDCWD, path);
	if (fd == 0)
		fd = callpath_open(&p, flags);
	callpath_end(&p);
	if (fd < 0 || text_of(fd, out))
		return fd;
	close(fd);
	return -ENXIO;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Opens the directory @dir; "" is the caller's own. */
static int find_dir(struct operands *o, const char *dir)
{
	if (o->fd >= 0 && strcmp(o->dir, dir) == 0)
		return 0;
	operands_end(o);
	o->fd = find(o, *dir ? dir : ".", O_DIRECTORY, o->at);
	if (o->fd < 0)
		return o->fd;
	memcpy(o->dir, dir, strlen(dir) + 1);
	return 0;
}

static const char *join(struct operands *o, const char *name)
{
	const char *top = strcmp(o->at, "/") == 0 ? "" : o->at;

	snprintf(o->out, sizeof(o->out), "%s/%s", top, name);
	return o->out;
}

/* If the object is no link, its directory is enough. */
static bool is_link(const struct operands *o, const char *name)
{
	struct stat st;

	return fstatat(o->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static const char *follow(struct operands *o, const char *path)
{
	char at[PATH_MAX];
	AUTO_CLOSE int fd = find(o, path, 0, at);

	if (fd < 0)
		return NULL;
	memcpy(o->out, at, strlen(at) + 1);
	return o->out;
}

const char *operand_path(struct operands *o, const char *path, bool last)
{
	size_t n = strlen(path);
	char dir[PATH_MAX];
	const char *name;

	if (!n || n >= PATH_MAX)
		return NULL;
	memcpy(dir, path, n + 1);
	/* The kernel follows "link/" and "link/." however it is used. */
	name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (!*name || is_dots(name)) {
		if (follow(o, path))
			return o->out;
		while (n > 1 && dir[n - 1] == '/')
			dir[--n] = '\0';
	}
	for (int i = 0; i < UNMADE_MAX; i++) {
		char *slash = strrchr(dir, '/');
		int r;

		name = slash ? path + (slash - dir) + 1 : path;
		n = slash ? (size_t)(slash - dir) : 0;
		if (is_dots(dir + (name - path)))
			return NULL;
		/* In "/x" the slash alone is the directory. */
		dir[n + (n == 0 && slash)] = '\0';
		r = find_dir(o, dir);
		if (r == 0)
			return i == 0 && last && is_link(o, name) && follow(o, path)
				       ? o->out
				       : join(o, name);
		if (r != -ENOENT || !n)
			return NULL;
		while (n > 1 && dir[n - 1] == '/')
			dir[--n] = '\0';
	}
	return NULL;
}
