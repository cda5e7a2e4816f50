/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/callpath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

/* No descriptor has more digits. One try is over in a microsecond. */
enum { DIGITS_MAX = 10, TRIES = 1000 };

static int open_of(pid_t pid, const char *what, int flags)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, what);
	fd = open(name, O_PATH | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

static const char *skip(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

/*
 * What a name means that begins with the caller's own directory in /proc: @what of it becomes
 * something to open there. Returns the rest of the name behind @what, or NULL if it is no such
 * name: then magic links on its way are refused like all others.
 */
static const char *own_proc(const char *path, char what[16])
{
	static const struct {
		const char *prefix, *what;
	} known[] = {
		{ "/proc/self/", "" },
		{ "/proc/thread-self/", "" },
		{ "/dev/", "fd/" },
	};
	static const char *const links[] = { "cwd", "root", "exe" };
	const char *rest = NULL, *n;

	for (size_t i = 0; i < ARRAY_SIZE(known) && !rest; i++) {
		rest = skip(path, known[i].prefix);
		if (rest && !skip(rest, known[i].what))
			rest = NULL;
	}
	if (!rest)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		n = skip(rest, links[i]);
		if (n && (!*n || *n == '/')) {
			snprintf(what, 16, "%s", links[i]);
			return n;
		}
	}
	n = skip(rest, "fd/");
	if (n) {
		size_t digits = strspn(n, "0123456789");

		if (digits && digits <= DIGITS_MAX && (!n[digits] || n[digits] == '/')) {
			snprintf(what, 16, "fd/%.*s", (int)digits, n);
			return n + digits;
		}
	}
	return NULL;
}

/* Opens where @path begins, and moves @path on to the rest of it. */
static int open_base(struct callpath *p, int dirfd, const char **path)
{
	char what[16];
	const char *rest = own_proc(*path, what);

	if (!rest && **path == '/')
		return callpath_hold(p);
	if (rest) {
		*path = rest + strspn(rest, "/");
		/* "fd/3/" is the name of a directory, as "fd/3/x" begins with one. */
		p->base = open_of(p->pid, what, *rest ? O_DIRECTORY : 0);
	} else if (dirfd == AT_FDCWD) {
		p->base = open_of(p->pid, "cwd", O_DIRECTORY);
	} else {
		snprintf(what, sizeof(what), "fd/%d", dirfd);
		p->base = open_of(p->pid, what, **path ? O_DIRECTORY : 0);
	}
	return p->base < 0 ? p->base : 0;
}

int callpath_start(struct callpath *p, pid_t pid, int dirfd, const char *path)
{
	size_t n;
	int r;

	p->pid = pid;
	p->root = p->base = -1;
	r = open_base(p, dirfd, &path);
	if (r < 0)
		return r;
	n = strlen(path);
	if (n >= sizeof(p->rest))
		return -ENAMETOOLONG;
	memcpy(p->rest, path, n + 1);
	return 0;
}

int callpath_hold(struct callpath *p)
{
	if (p->root < 0)
		p->root = open_of(p->pid, "root", O_DIRECTORY);
	return p->root < 0 ? p->root : 0;
}

void callpath_end(struct callpath *p)
{
	cleanup_close(&p->base);
	cleanup_close(&p->root);
	p->base = p->root = -1;
}

static int open_scoped(int dir, const char *path, int flags, uint64_t scope)
{
	struct open_how how = { .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
				.resolve = scope | RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	/* Any rename or mount on the machine meanwhile makes the kernel unsure of "..". */
	for (int i = 0; i < TRIES && fd < 0; i++) {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			break;
		if (fd < 0)
			sched_yield();
	}
	return fd < 0 ? -errno : (int)fd;
}

static ssize_t text_of(int fd, char *out, size_t size)
{
	char name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, out, size);
	if (n < 0 || n == (ssize_t)size)
		return n < 0 ? -errno : -ENAMETOOLONG;
	out[n] = '\0';
	return n;
}

static bool same_place(int a, int b)
{
	struct statx x, y;

	return statx(a, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &x) == 0 &&
	       statx(b, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &y) == 0 &&
	       x.stx_ino == y.stx_ino && x.stx_dev_major == y.stx_dev_major &&
	       x.stx_dev_minor == y.stx_dev_minor && x.stx_mnt_id == y.stx_mnt_id;
}

/*
 * A name that leads up from where it begins, or through a link to an absolute path: the kernel can
 * confine it to the caller's root only if the whole of it is one name from there. The text of the
 * way to the beginning is proven by opening it.
 */
static int open_climbing(struct callpath *p, const char *rest, int flags)
{
	char root[PATH_MAX], whole[2 * PATH_MAX];
	AUTO_CLOSE int again = -1;
	char *below = whole;
	ssize_t n, len;

	if (callpath_hold(p) < 0)
		return -EXDEV;
	n = text_of(p->root, root, sizeof(root));
	if (n < 0)
		return (int)n;
	len = text_of(p->base, whole, PATH_MAX);
	if (len < 0)
		return (int)len;
	if (strcmp(root, "/") != 0) {
		if (strncmp(whole, root, (size_t)n) != 0 ||
		    (whole[n] != '/' && whole[n] != '\0'))
			return -EXDEV;
		below += n;
	}
	again = open_scoped(p->root, *below ? below : "/", O_DIRECTORY,
			    RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	if (again < 0 || !same_place(again, p->base))
		return -EXDEV;
	snprintf(whole + len, sizeof(whole) - (size_t)len, "/%s", rest);
	return open_scoped(p->root, below, flags, RESOLVE_IN_ROOT);
}

/* @path: all or the beginning of p->rest. */
static int open_part(struct callpath *p, const char *path, int flags)
{
	int fd;

	if (p->base < 0)
		return open_scoped(p->root, *path ? path : "/", flags, RESOLVE_IN_ROOT);
	fd = open_scoped(p->base, *path ? path : ".", flags, RESOLVE_BENEATH);
	/* Absolute links, and "..", are no part of what lies beneath. */
	return fd == -EXDEV ? open_climbing(p, path, flags) : fd;
}

int callpath_open(struct callpath *p, int flags)
{
	struct stat st;
	int fd;

	if (*p->rest || p->base < 0)
		return open_part(p, p->rest, flags);
	/* The name of a descriptor itself. Not followed, it would be a link of /proc. */
	if (flags & O_NOFOLLOW)
		return -EXDEV;
	if (flags & O_DIRECTORY && (fstat(p->base, &st) < 0 || !S_ISDIR(st.st_mode)))
		return -ENOTDIR;
	fd = fcntl(p->base, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int callpath_open_parent(struct callpath *p, char *name)
{
	char path[PATH_MAX];
	size_t n = strlen(p->rest);
	char *last;

	memcpy(path, p->rest, n + 1);
	while (n && path[n - 1] == '/')
		path[--n] = '\0';
	last = strrchr(path, '/');
	last = last ? last + 1 : path;
	if (!*last || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return -EXDEV;
	if (strlen(last) > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, last, strlen(last) + 1);
	*last = '\0';
	return open_part(p, path, O_DIRECTORY);
}

bool callpath_is_absent(struct callpath *p)
{
	char path[PATH_MAX];
	bool absent = false;
	int fd = -ENOENT;
	char *slash;

	memcpy(path, p->rest, strlen(p->rest) + 1);
	do {
		const char *name = path;
		struct statfs fs;
		struct stat st;

		slash = strrchr(path, '/');
		if (slash) {
			*slash = '\0';
			name = slash + 1;
		}
		if (!*name)
			continue;
		fd = open_part(p, slash ? path : "", O_DIRECTORY);
		if (fd < 0)
			continue;
		absent = fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC &&
			 fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
			 errno == ENOENT;
		close(fd);
	} while (fd == -ENOENT && slash);
	return absent;
}
