/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/movedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* Names of a directory, read whole: moving entries while reading would skip some. */
struct names {
	char **v;
	size_t n;
};

static void names_free(struct names *ns)
{
	for (size_t i = 0; i < ns->n; i++)
		free(ns->v[i]);
	free(ns->v);
}

static int names_read(int dir, struct names *ns)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSEDIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!d)
		return -errno;
	errno = 0;
	while ((de = readdir(d))) {
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		if ((ns->n & (ns->n - 1)) == 0)
			ns->v = xrealloc(ns->v, (ns->n ? 2 * ns->n : 8) * sizeof(*ns->v));
		ns->v[ns->n++] = xstrdup(de->d_name);
	}
	return -errno;
}

static int open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int copy_xattrs(int from, int to)
{
	AUTO_FREE char *names = NULL, *value = NULL;
	ssize_t n = flistxattr(from, NULL, 0), len;

	if (n <= 0)
		return n < 0 && errno != ENOTSUP ? -errno : 0;
	names = xmalloc((size_t)n);
	n = flistxattr(from, names, (size_t)n);
	if (n < 0)
		return -errno;
	value = xmalloc(XATTR_SIZE_MAX);
	for (char *p = names; p < names + n; p += strlen(p) + 1) {
		len = fgetxattr(from, p, value, XATTR_SIZE_MAX);
		if (len < 0 || fsetxattr(to, p, value, (size_t)len, 0) < 0)
			return -errno;
	}
	return 0;
}

/* @to becomes what @from was when @st was taken. */
static int dress(int from, int to, const struct stat *st)
{
	struct stat now;
	int r;

	if (fstat(to, &now) < 0)
		return -errno;
	if ((now.st_uid != st->st_uid || now.st_gid != st->st_gid) &&
	    fchown(to, st->st_uid, st->st_gid) < 0)
		return -errno;
	r = copy_xattrs(from, to);
	if (r < 0)
		return r;
	if (fchmod(to, st->st_mode & 07777) < 0)
		return -errno;
	return futimens(to, (struct timespec[]){ st->st_atim, st->st_mtim }) < 0 ? -errno
										 : 0;
}

static int move_children(int from, int to);

/* One entry; a directory that will not go is made anew and emptied into the new one. */
static int move_entry(int from, int to, const char *name)
{
	AUTO_CLOSE int src = -1, dst = -1;
	struct stat st;
	int r;

	if (renameat(from, name, to, name) == 0)
		return 0;
	if (errno != EXDEV)
		return -errno;
	src = open_dir(from, name);
	if (src < 0)
		return src == -ENOTDIR || src == -ELOOP ? -EXDEV : src;
	if (fstat(src, &st) < 0 || mkdirat(to, name, 0700) < 0)
		return -errno;
	dst = open_dir(to, name);
	if (dst < 0)
		return dst;
	r = move_children(src, dst);
	if (r == 0)
		r = dress(src, dst, &st);
	if (r == 0 && unlinkat(from, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

static int move_children(int from, int to)
{
	struct names ns = { 0 };
	int r = names_read(from, &ns);

	for (size_t i = 0; i < ns.n && r == 0; i++)
		r = move_entry(from, to, ns.v[i]);
	names_free(&ns);
	return r;
}

/* After a failure half way: what was moved goes back; directories of both sides merge. */
static void move_back(int from, int to)
{
	struct names ns = { 0 };

	names_read(from, &ns);
	for (size_t i = 0; i < ns.n; i++) {
		AUTO_CLOSE int src = -1, dst = -1;
		struct stat st;

		if (renameat(from, ns.v[i], to, ns.v[i]) == 0)
			continue;
		src = open_dir(from, ns.v[i]);
		dst = open_dir(to, ns.v[i]);
		if (src < 0 || dst < 0 || fstat(dst, &st) < 0)
			continue;
		move_back(src, dst);
		futimens(dst, (struct timespec[]){ st.st_atim, st.st_mtim });
		unlinkat(from, ns.v[i], AT_REMOVEDIR);
	}
	names_free(&ns);
}

static int check_target(int dd, const char *dn)
{
	AUTO_CLOSE int fd = open_dir(dd, dn);
	struct names ns = { 0 };
	int r;

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd == -ELOOP ? -ENOTDIR : fd;
	r = names_read(fd, &ns);
	if (r == 0 && ns.n)
		r = -ENOTEMPTY;
	names_free(&ns);
	return r;
}

int movedir(int sd, const char *sn, int dd, const char *dn)
{
	AUTO_CLOSE int src = -1, tmp = -1;
	char name[32];
	struct stat st;
	uint64_t salt;
	int r;

	r = check_target(dd, dn);
	if (r < 0)
		return r;
	src = open_dir(sd, sn);
	if (src < 0)
		return src;
	if (fstat(src, &st) < 0)
		return -errno;
	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	snprintf(name, sizeof(name), ".stet-%016llx", (unsigned long long)salt);
	if (mkdirat(dd, name, 0700) < 0)
		return -errno;
	tmp = open_dir(dd, name);
	r = tmp < 0 ? tmp : move_children(src, tmp);
	if (r == 0)
		r = dress(src, tmp, &st);
	if (r == 0 && renameat(dd, name, dd, dn) < 0)
		r = -errno;
	if (r < 0) {
		if (tmp >= 0)
			move_back(tmp, src);
		futimens(src, (struct timespec[]){ st.st_atim, st.st_mtim });
		unlinkat(dd, name, AT_REMOVEDIR);
		return r;
	}
	return unlinkat(sd, sn, AT_REMOVEDIR) < 0 ? -errno : 0;
}
