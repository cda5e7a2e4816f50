/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/movedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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
#include "sys/acl.h"

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

/* A directory may have been given an ACL by the one that it was made in. */
static int drop_acls(int fd)
{
	static const char *const acls[] = { ACL_ACCESS, ACL_DEFAULT };

	for (size_t i = 0; i < ARRAY_SIZE(acls); i++)
		if (fremovexattr(fd, acls[i]) < 0 && errno != ENODATA && errno != ENOTSUP)
			return -errno;
	return 0;
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
		if (len >= 0 && (!strcmp(p, ACL_ACCESS) || !strcmp(p, ACL_DEFAULT)))
			len = acl_without_strangers(value, (size_t)len);
		if (len < 0 || fsetxattr(to, p, value, (size_t)len, 0) < 0)
			return -errno;
	}
	return 0;
}

static void set_times(int fd, const struct stat *st)
{
	futimens(fd, (struct timespec[]){ st->st_atim, st->st_mtim });
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

/* What came from @from to @to goes back; nothing that has come to be there is replaced. */
static void take_back(int from, int to, const struct stat *st)
{
	struct names ns = { 0 };

	names_read(to, &ns);
	for (size_t i = 0; i < ns.n; i++)
		renameat2(to, ns.v[i], from, ns.v[i], RENAME_NOREPLACE);
	names_free(&ns);
	set_times(from, st);
}

static int move_entry(int from, int to, const char *name);

/* Into the new directory @to, which becomes like @from; or else nothing is different. */
static int pour(int from, int to, const struct stat *st)
{
	struct names ns = { 0 };
	int r = drop_acls(to);

	if (r == 0)
		r = names_read(from, &ns);
	for (size_t i = 0; i < ns.n && r == 0; i++)
		r = move_entry(from, to, ns.v[i]);
	names_free(&ns);
	if (r == 0)
		r = dress(from, to, st);
	if (r < 0)
		take_back(from, to, st);
	return r;
}

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
	r = dst < 0 ? dst : pour(src, dst, &st);
	if (r == 0 && unlinkat(from, name, AT_REMOVEDIR) < 0) {
		r = -errno;
		take_back(src, dst, &st);
	}
	if (r < 0)
		unlinkat(to, name, AT_REMOVEDIR);
	return r;
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

static bool may(int fd, int mode)
{
	return faccessat(fd, "", mode, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

/*
 * The kernel has asked the same, but of a name, which may be another directory's by now: what
 * is emptied with our own rights must be what the caller could have renamed.
 */
static int may_leave(int sd, int src, int dd, const struct guise *g)
{
	struct stat s, d, st;

	if (fstat(sd, &s) < 0 || fstat(dd, &d) < 0 || fstat(src, &st) < 0)
		return -errno;
	if (!may(sd, W_OK | X_OK) || !may(dd, W_OK | X_OK))
		return -EACCES;
	if ((s.st_dev != d.st_dev || s.st_ino != d.st_ino) && !may(src, W_OK))
		return -EACCES;
	if (!g->own && s.st_mode & S_ISVTX && g->uid != s.st_uid && g->uid != st.st_uid)
		return -EPERM;
	return 0;
}

/* What a plain rename cannot fail with is said as what makes programs copy instead. */
static int plain_error(int r)
{
	switch (r) {
	case 0:
	case -EDQUOT:
	case -EIO:
	case -ENOMEM:
	case -ENOSPC:
	case -EROFS:
		return r;
	default:
		return -EXDEV;
	}
}

static int spare_name(char *name, size_t len)
{
	uint64_t salt;

	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	snprintf(name, len, ".stet-%016llx", (unsigned long long)salt);
	return 0;
}

/* With our own rights but where it says otherwise. */
static int move(int sd, const char *sn, int dd, const char *dn, const struct guise *g)
{
	AUTO_CLOSE int src = -1, tmp = -1;
	char name[32];
	struct stat st;
	int r = check_target(dd, dn);

	if (r < 0)
		return r;
	src = open_dir(sd, sn);
	if (src < 0)
		return src;
	if (fstat(src, &st) < 0)
		return -errno;
	r = guise_on(g);
	if (r == 0)
		r = may_leave(sd, src, dd, g);
	if (r == 0)
		r = guise_off(g);
	if (r == 0)
		r = spare_name(name, sizeof(name));
	if (r < 0)
		return r;
	if (mkdirat(dd, name, 0700) < 0)
		return -errno;
	tmp = open_dir(dd, name);
	r = plain_error(tmp < 0 ? tmp : pour(src, tmp, &st));
	if (r == 0) {
		r = guise_on(g);
		if (r == 0 && renameat(dd, name, dd, dn) < 0)
			r = errno == EPERM ? -EXDEV : -errno;
		if (r == 0)
			return unlinkat(sd, sn, AT_REMOVEDIR) < 0 ? -errno : 0;
		if (guise_off(g) == 0)
			take_back(src, tmp, &st);
	}
	unlinkat(dd, name, AT_REMOVEDIR);
	return r;
}

int movedir(int sd, const char *sn, int dd, const char *dn, const struct guise *g)
{
	int r = guise_off(g), back;

	if (r == 0)
		r = move(sd, sn, dd, dn, g);
	back = guise_on(g);
	return r < 0 ? r : back;
}

static int move_any(int sd, const char *sn, int dd, const char *dn, const struct guise *g)
{
	if (renameat2(sd, sn, dd, dn, RENAME_NOREPLACE) == 0)
		return 0;
	return errno == EXDEV ? movedir(sd, sn, dd, dn, g) : -errno;
}

int movedir_exchange(int sd, const char *sn, int dd, const char *dn,
		     const struct guise *g)
{
	char name[32];
	int r = spare_name(name, sizeof(name));

	if (r == 0)
		r = move_any(sd, sn, dd, name, g);
	if (r < 0)
		return r;
	r = move_any(dd, dn, sd, sn, g);
	if (r == 0) {
		r = move_any(dd, name, dd, dn, g);
		if (r < 0)
			move_any(sd, sn, dd, dn, g);
	}
	if (r < 0)
		move_any(dd, name, sd, sn, g);
	return r;
}
