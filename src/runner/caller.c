/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The directory a path starts from, as a name of ours. */
static void base_name(pid_t pid, int dirfd, const char *path, char *out, size_t len)
{
	if (path[0] == '/')
		snprintf(out, len, "/proc/%d/root", (int)pid);
	else if (dirfd == AT_FDCWD)
		snprintf(out, len, "/proc/%d/cwd", (int)pid);
	else
		snprintf(out, len, "/proc/%d/fd/%d", (int)pid, dirfd);
}

bool caller_is_directory(pid_t pid, int dirfd, const char *path)
{
	char base[64], full[PATH_MAX + sizeof(base) + 3];
	struct stat st;
	int n;

	base_name(pid, dirfd, path, base, sizeof(base));
	n = snprintf(full, sizeof(full), "%s/%s/.", base, path);
	/* Mostly this says that it is none, and saves the kernel the look at all its attributes. */
	if (faccessat(AT_FDCWD, full, F_OK, AT_EACCESS) < 0 && errno != EACCES &&
	    errno != ENAMETOOLONG)
		return false;
	full[n - 2] = '\0';
	return lstat(full, &st) == 0 && S_ISDIR(st.st_mode);
}

int caller_find(int base, char *path, struct caller_place *p)
{
	size_t n = strlen(path);
	char *slash, *name;

	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	slash = strrchr(path, '/');
	name = slash ? slash + 1 : path;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EBUSY;
	if (strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(p->name, name, strlen(name) + 1);
	*name = '\0';
	while (*path == '/')
		path++; /* the base is the caller's root already */
	p->dir = openat(base, *path ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->dir < 0 ? -errno : 0;
}

int caller_base(pid_t pid, int dirfd, const char *path)
{
	char name[64];
	int fd;

	base_name(pid, dirfd, path, name, sizeof(name));
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool caller_same_root(pid_t pid)
{
	struct stat a, b;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	return stat(name, &a) == 0 && stat("/", &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}
