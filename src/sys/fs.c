/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"

/* Names that somebody who was killed may have left. */
enum { TRIES = 100 };

#define SAFE_FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static int open_how(int dirfd, const char *rel, int flags, uint64_t resolve)
{
	struct open_how how = {
		.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* openat2 refuses flag combinations that openat only ignores. */
	if (flags & O_PATH)
		how.flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW;
	else
		how.flags = (unsigned)flags | SAFE_FLAGS;
	do {
		fd = syscall(SYS_openat2, dirfd, rel, &how, sizeof(how));
	} while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

static int open_chunk(int dirfd, const char *rel, int flags)
{
	return open_how(dirfd, rel, flags, RESOLVE_BENEATH);
}

int fs_open_dir_here(int dirfd, const char *name, int flags)
{
	return open_how(dirfd, name, flags | O_DIRECTORY,
			RESOLVE_BENEATH | RESOLVE_NO_XDEV);
}

int fs_open_view(const char *path, int flags, bool links)
{
	const int safe = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct open_how how = {
		.flags = (unsigned)(flags | safe),
		.resolve = RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS),
	};
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* NO_SYMLINKS also refuses a link as the last component, even for O_PATH|O_NOFOLLOW. */
static int open_last(int dirfd, const char *name, int flags)
{
	int fd;

	if (!(flags & O_PATH))
		return open_chunk(dirfd, name, flags);
	fd = openat(dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Descends @len bytes of @rel, less than PATH_MAX at a time; a new descriptor. */
static int descend(int dirfd, const char *rel, size_t len)
{
	AUTO_CLOSE int at = -1;
	char chunk[PATH_MAX];

	while (len > 0) {
		size_t n = len;
		int fd;

		if (n >= sizeof(chunk)) {
			n = sizeof(chunk) - 1;
			while (n > 0 && rel[n] != '/')
				n--;
			if (n == 0)
				return -ENAMETOOLONG;
		}
		memcpy(chunk, rel, n);
		chunk[n] = '\0';
		fd = open_chunk(at < 0 ? dirfd : at, chunk, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return fd;
		if (at >= 0)
			close(at);
		at = fd;
		while (n < len && rel[n] == '/')
			n++;
		rel += n;
		len -= n;
	}
	if (at < 0)
		return open_chunk(dirfd, ".", O_PATH | O_DIRECTORY);
	return TAKE_FD(at);
}

int fs_open_parent(int dirfd, const char *rel, const char **base)
{
	const char *slash = strrchr(rel, '/');

	*base = slash ? slash + 1 : rel;
	return descend(dirfd, rel, slash ? (size_t)(slash - rel) : 0);
}

int fs_open_beneath(int dirfd, const char *rel, int flags)
{
	AUTO_CLOSE int parent = -1;
	const char *base;

	if (strlen(rel) < PATH_MAX && !(flags & O_PATH))
		return open_chunk(dirfd, rel, flags);
	parent = fs_open_parent(dirfd, rel, &base);
	if (parent < 0)
		return parent;
	return open_last(parent, base, flags);
}

int fs_open_read(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_NOATIME | SAFE_FLAGS);

	/* O_NOATIME is for owners only. */
	if (fd < 0 && errno == EPERM)
		fd = openat(dirfd, name, O_RDONLY | SAFE_FLAGS);
	return fd < 0 ? -errno : fd;
}

int fs_readlink(int dirfd, const char *name, struct buf *out)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dirfd, name, target, sizeof(target));

	if (n < 0)
		return -errno;
	buf_reset(out);
	buf_add(out, target, (size_t)n);
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int fs_names_read(int dirfd, struct fs_names *out)
{
	_Alignas(struct dirent64) char block[32768];
	AUTO_BUF struct buf names = BUF_INIT;
	size_t count = 0, i;
	const char *p;
	ssize_t n;

	while ((n = getdents64(dirfd, block, sizeof(block))) > 0) {
		ssize_t at = 0;

		while (at < n) {
			const struct dirent64 *d = (const void *)(block + at);

			at += d->d_reclen;
			if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
				continue;
			buf_add(&names, d->d_name, strlen(d->d_name) + 1);
			count++;
		}
	}
	if (n < 0)
		return -errno;
	out->n = count;
	out->data = buf_take(&names);
	out->v = xmalloc((count + 1) * sizeof(*out->v));
	for (p = out->data, i = 0; i < count; i++, p += strlen(p) + 1)
		out->v[i] = p;
	qsort(out->v, count, sizeof(*out->v), by_bytes);
	return 0;
}

int fs_count_few(int dirfd, size_t *n)
{
	_Alignas(struct dirent64) char block[1024];
	ssize_t len;

	if (lseek(dirfd, 0, SEEK_SET) < 0)
		return -errno;
	for (*n = 0; *n < FS_FEW;) {
		len = getdents64(dirfd, block, sizeof(block));
		if (len <= 0)
			return len < 0 ? -errno : 0;
		for (ssize_t at = 0; at < len;) {
			const struct dirent64 *de = (const void *)(block + at);

			*n += strcmp(de->d_name, ".") != 0 &&
			      strcmp(de->d_name, "..") != 0;
			at += de->d_reclen;
		}
	}
	return 0;
}

void fs_names_free(struct fs_names *names)
{
	free(names->data);
	free(names->v);
	*names = (struct fs_names){ 0 };
}

/* Since 6.13; same number on every architecture, alpha apart. */
#ifndef SYS_getxattrat
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#endif

struct xattr_value {
	_Alignas(8) uint64_t value;
	uint32_t size;
	uint32_t flags;
};

/* One question about attributes: the list if attr is NULL; by (dir, name), or by fd. */
struct question {
	int dirfd;
	const char *name; /* NULL: dirfd is the object itself */
	const char *attr;
};

static ssize_t ask_at(const struct question *q, void *to, size_t size)
{
	struct xattr_value v = { (uint64_t)(uintptr_t)to, (uint32_t)size, 0 };

	if (!q->attr)
		return syscall(SYS_listxattrat, q->dirfd, q->name, AT_SYMLINK_NOFOLLOW,
			       to, size);
	return syscall(SYS_getxattrat, q->dirfd, q->name, AT_SYMLINK_NOFOLLOW, q->attr,
		       &v, sizeof(v));
}

static ssize_t ask_fd(const struct question *q, void *to, size_t size)
{
	char path[sizeof("/proc/self/fd/") + 12];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", q->dirfd);
	return q->attr ? getxattr(path, q->attr, to, size) : listxattr(path, to, size);
}

static int ask(const struct question *q, struct buf *out)
{
	AUTO_FREE char *big = NULL;
	char small[1024];
	char *to = small;
	ssize_t n;

	buf_reset(out);
	n = q->name ? ask_at(q, small, sizeof(small)) : ask_fd(q, small, sizeof(small));
	if (n < 0 && errno == ERANGE) {
		to = big = xmalloc(XATTR_LIST_MAX);
		n = q->name ? ask_at(q, big, XATTR_LIST_MAX)
			    : ask_fd(q, big, XATTR_LIST_MAX);
	}
	if (n < 0)
		return !q->attr && errno == ENOTSUP ? 0 : -errno;
	buf_add(out, to, (size_t)n);
	return 0;
}

/* An older kernel (or a container's filter in front of it) is asked by descriptor. */
static int ask_name(struct question *q, struct buf *out)
{
	static atomic_bool missing;
	AUTO_CLOSE int fd = -1;
	int r;

	if (!missing) {
		r = ask(q, out);
		if (r != -ENOSYS && r != -EPERM)
			return r;
		missing = r == -ENOSYS;
	}
	fd = openat(q->dirfd, q->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	q->dirfd = fd;
	q->name = NULL;
	return ask(q, out);
}

int fs_xattr_list(int dirfd, const char *name, struct buf *out)
{
	struct question q = { dirfd, name, NULL };

	return ask_name(&q, out);
}

int fs_xattr_get(int dirfd, const char *name, const char *attr, struct buf *out)
{
	struct question q = { dirfd, name, attr };

	return ask_name(&q, out);
}

int fs_fd_xattr_list(int fd, struct buf *out)
{
	struct question q = { fd, NULL, NULL };

	return ask(&q, out);
}

int fs_fd_xattr_get(int fd, const char *attr, struct buf *out)
{
	struct question q = { fd, NULL, attr };

	return ask(&q, out);
}

int fs_open_nameless(int dirfd, const char *dir)
{
	const int flags = O_RDWR | O_CLOEXEC;
	int fd = FAULT_POINT("nameless.open");

	if (fd == 0)
		fd = openat(dirfd, dir, flags | O_TMPFILE, 0600);
	else
		errno = -fd;
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	for (unsigned i = 0; i < TRIES; i++) {
		AUTO_FREE char *name = xasprintf("%s/.new-%d-%u", dir, getpid(), i);

		fd = openat(dirfd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -errno;
		unlinkat(dirfd, name, 0);
		return fd;
	}
	return -EEXIST;
}

uint64_t fs_unwritten(void)
{
	AUTO_CLOSE int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	static const char *const names[] = { "\nDirty:", "\nWriteback:" };
	uint64_t sum = 0;
	char text[4096];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return UINT64_MAX;
	text[n] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *p = strstr(text, names[i]);

		if (!p)
			return UINT64_MAX;
		sum += strtoull(p + strlen(names[i]), NULL, 10) * 1024;
	}
	return sum;
}
