/* SPDX-License-Identifier: Apache-2.0 */
#include "emulate/movedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "sys/acl.h"
#include "sys/fs.h"

/*
 * Bytes of names that are kept: at all depths together, and at least at each depth. With less
 * a level reads its directory several times.
 */
enum { NAMES_MAX = 1 << 20, NAMES_MIN = 4096, DEPTH_MAX = 4096 };

/*
 * How often a directory is read again that other processes add entries to while it is emptied.
 */
enum { TRIES = 16 };

struct job {
	size_t held; /* bytes of names */
	unsigned depth;
};

/*
 * Some names of a directory, one behind the other: moving entries while reading would skip
 * some of them.
 */
struct names {
	struct buf data;
	bool more; /* there are others */
};

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !d)
		cleanup_close(&fd);
	return d;
}

static int names_read(struct job *j, int dir, struct names *ns)
{
	AUTO_CLOSEDIR DIR *d = open_list(dir);
	size_t max = j->held + NAMES_MIN < NAMES_MAX ? NAMES_MAX - j->held : NAMES_MIN;
	struct dirent *de;

	*ns = (struct names){ .data = BUF_INIT };
	if (!d)
		return -errno;
	errno = 0;
	while (!ns->more && (de = readdir(d))) {
		if (is_dots(de->d_name))
			continue;
		buf_add(&ns->data, de->d_name, strlen(de->d_name) + 1);
		ns->more = ns->data.len >= max;
	}
	j->held += ns->data.len;
	return -errno;
}

static void names_free(struct job *j, struct names *ns)
{
	j->held -= ns->data.len;
	buf_free(&ns->data);
}

static int check_empty(int dir)
{
	AUTO_CLOSEDIR DIR *d = open_list(dir);
	struct dirent *de;

	if (!d)
		return -errno;
	errno = 0;
	while ((de = readdir(d)))
		if (!is_dots(de->d_name))
			return -ENOTEMPTY;
	return -errno;
}

/* Opens a directory in the same mount; no link is followed. */
static int open_dir(int at, const char *name)
{
	return fs_open_dir_here(at, name, O_RDONLY);
}

/* Removes ACLs that the new directory has inherited. */
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

/* Gives @to the attributes that @from had when @st was taken. */
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

/* Moves the entries back from @to to @from; no new entry is replaced. */
static void take_back(struct job *j, int from, int to, const struct stat *st)
{
	struct names ns;
	bool again;

	do {
		again = false;
		if (names_read(j, to, &ns) == 0)
			for (const char *p = ns.data.data, *end = p + ns.data.len;
			     p < end; p += strlen(p) + 1)
				if (renameat2(to, p, from, p, RENAME_NOREPLACE) == 0)
					again = ns.more;
		names_free(j, &ns);
	} while (again);
	set_times(from, st);
}

static int move_entry(struct job *j, int from, int to, const char *name);

static int move_entries(struct job *j, int from, int to)
{
	struct names ns;
	bool more;
	int r;

	do {
		r = names_read(j, from, &ns);
		for (const char *p = ns.data.data, *end = p + ns.data.len;
		     p < end && r == 0; p += strlen(p) + 1)
			r = move_entry(j, from, to, p);
		more = ns.more;
		names_free(j, &ns);
	} while (r == 0 && more);
	return r;
}

/*
 * Moves all entries into the new directory @to, which becomes like @from; on failure nothing
 * has changed.
 */
static int pour(struct job *j, int from, int to, const struct stat *st)
{
	int r = drop_acls(to);

	if (r == 0)
		r = move_entries(j, from, to);
	if (r == 0)
		r = dress(from, to, st);
	if (r < 0)
		take_back(j, from, to, st);
	return r;
}

/*
 * Removes @at/@name, whose entries were moved from @from to @to, with entries that were added
 * meanwhile.
 */
static int remove_poured(struct job *j, int at, const char *name, int from, int to,
			 const struct stat *st)
{
	int r = 0;

	for (int i = 0; i < TRIES && r == 0; i++) {
		if (unlinkat(at, name, AT_REMOVEDIR) == 0)
			return 0;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return errno == ENOENT ? 0 : -errno;
		r = move_entries(j, from, to);
		set_times(to, st);
	}
	return r < 0 ? r : -ENOTEMPTY;
}

static int move_directory(struct job *j, int from, int to, const char *name)
{
	AUTO_CLOSE int src = open_dir(from, name), dst = -1;
	struct stat st;
	int r;

	if (src == -ENOENT)
		return 0;
	if (src < 0)
		return src == -ENOTDIR || src == -ELOOP ? -EXDEV : src;
	if (fstat(src, &st) < 0 || mkdirat(to, name, 0700) < 0)
		return -errno;
	dst = open_dir(to, name);
	r = dst < 0 ? dst : pour(j, src, dst, &st);
	if (r == 0) {
		r = remove_poured(j, from, name, src, dst, &st);
		if (r < 0)
			take_back(j, src, dst, &st);
	}
	if (r < 0)
		unlinkat(to, name, AT_REMOVEDIR);
	return r;
}

/* Has another process moved or deleted it meanwhile? */
static bool is_gone(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/*
 * Moves one entry; a directory that the kernel does not move is made anew and its entries are
 * moved.
 */
static int move_entry(struct job *j, int from, int to, const char *name)
{
	int r;

	if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == ENOENT)
		return is_gone(from, name) ? 0 : -ESTALE;
	if (errno != EXDEV || j->depth == DEPTH_MAX)
		return -errno;
	j->depth++;
	r = move_directory(j, from, to, name);
	j->depth--;
	return r;
}

static int check_target(int dd, const char *dn)
{
	AUTO_CLOSE int fd = open_dir(dd, dn);

	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd == -ELOOP ? -ENOTDIR : fd;
	return check_empty(fd);
}

static bool may(int fd, int mode)
{
	return faccessat(fd, "", mode, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

/*
 * Could the caller have renamed this directory? The kernel has checked that for a name, which
 * may be another directory by now, and the entries are moved with our own rights.
 */
static int may_leave(int sd, int src, int dd, const struct fsuid *g)
{
	struct stat s, d, st;

	if (fstat(sd, &s) < 0 || fstat(dd, &d) < 0 || fstat(src, &st) < 0)
		return -errno;
	if (!may(sd, W_OK | X_OK) || !may(dd, W_OK | X_OK))
		return -EACCES;
	if ((s.st_dev != d.st_dev || s.st_ino != d.st_ino) && !may(src, W_OK))
		return -EACCES;
	if (!fsuid_owns_all(g) && s.st_mode & S_ISVTX && g->uid != s.st_uid &&
	    g->uid != st.st_uid)
		return -EPERM;
	return 0;
}

/* Errors that rename(2) does not give are reported as EXDEV, which makes programs copy. */
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

/* Opens the new directory, if the name still leads to the one that was made. */
static int open_made(int dd, const char *name)
{
	AUTO_CLOSE int fd = open_dir(dd, name);
	struct stat st;
	int r;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = st.st_uid == geteuid() ? check_empty(fd) : -ESTALE;
	return r < 0 ? r : TAKE_FD(fd);
}

/*
 * Everything is under its new name: the old directory is removed, with entries that were added
 * meanwhile. If processes keep adding entries, it stays as a directory that they have made.
 */
static void remove_old(struct job *j, int sd, const char *sn, int src, int tmp,
		       const struct stat *st, const struct fsuid *g)
{
	for (int i = 0; i < TRIES; i++) {
		if (fsuid_on(g) < 0 || unlinkat(sd, sn, AT_REMOVEDIR) == 0 ||
		    (errno != ENOTEMPTY && errno != EEXIST))
			return;
		if (fsuid_off() < 0 || move_entries(j, src, tmp) < 0)
			return;
		set_times(tmp, st);
	}
}

/* The rename itself; with our own rights except where @g is put on. */
static int move(int sd, const char *sn, int dd, const char *dn, const struct fsuid *g)
{
	AUTO_CLOSE int src = -1, tmp = -1;
	struct job j = { 0 };
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
	r = fsuid_on(g);
	if (r == 0)
		r = may_leave(sd, src, dd, g);
	if (r == 0)
		r = fsuid_off();
	if (r == 0)
		r = spare_name(name, sizeof(name));
	if (r < 0)
		return r;
	if (mkdirat(dd, name, 0700) < 0)
		return -errno;
	tmp = open_made(dd, name);
	r = plain_error(tmp < 0 ? tmp : pour(&j, src, tmp, &st));
	if (r == 0) {
		r = fsuid_on(g);
		if (r == 0 && renameat(dd, name, dd, dn) < 0)
			r = errno == EPERM ? -EXDEV : -errno;
		if (r == 0) {
			remove_old(&j, sd, sn, src, tmp, &st, g);
			return 0;
		}
		if (fsuid_off() == 0)
			take_back(&j, src, tmp, &st);
	}
	unlinkat(dd, name, AT_REMOVEDIR);
	return r;
}

int movedir(int sd, const char *sn, int dd, const char *dn, const struct fsuid *g)
{
	int r = fsuid_off(), back;

	if (r == 0)
		r = move(sd, sn, dd, dn, g);
	back = fsuid_on(g);
	return r < 0 ? r : back;
}

static int move_any(int sd, const char *sn, int dd, const char *dn, const struct fsuid *g)
{
	if (renameat2(sd, sn, dd, dn, RENAME_NOREPLACE) == 0)
		return 0;
	return errno == EXDEV ? movedir(sd, sn, dd, dn, g) : -errno;
}

int movedir_exchange(int sd, const char *sn, int dd, const char *dn,
		     const struct fsuid *g)
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
