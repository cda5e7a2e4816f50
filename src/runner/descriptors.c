/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

/* No directory of ours is deeper; a descriptor of a deeper one is not ours. */
enum { UP_MAX = 4096 };

static bool same_place(int a, int b)
{
	struct statx x, y;

	return statx(a, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &x) == 0 &&
	       statx(b, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &y) == 0 &&
	       x.stx_mask & y.stx_mask & STATX_MNT_ID && x.stx_mnt_id == y.stx_mnt_id &&
	       x.stx_ino == y.stx_ino && x.stx_dev_major == y.stx_dev_major &&
	       x.stx_dev_minor == y.stx_dev_minor;
}

/* Follows ".." from @fd to the top; returns that directory, or -errno. */
static int climb(int fd)
{
	AUTO_CLOSE int at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; at >= 0 && i < UP_MAX; i++) {
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (up >= 0 && same_place(at, up)) {
			close(up);
			return TAKE_FD(at);
		}
		close(at);
		at = up;
	}
	return at < 0 ? -errno : -EXDEV;
}

static int check_dir(const struct viewmounts *m, int fd, enum hold how)
{
	AUTO_CLOSE int top = climb(fd),
		       root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0)
		return top;
	if (root < 0)
		return -errno;
	if (how == HOLD_APART)
		return same_place(top, fd) && !same_place(top, root) ? 0 : -EXDEV;
	return same_place(top, root) || same_place(top, m->root) ? 0 : -EXDEV;
}

static int check(const struct viewmounts *m, const struct held *h)
{
	struct stat st;

	if (fstat(h->fd, &st) < 0)
		return -errno;
	if (h->how == HOLD_PLAIN)
		return S_ISDIR(st.st_mode) ? -EXDEV : 0;
	return check_dir(m, h->fd, h->how);
}

/* Closes streams that lead to a file of the host; the output of --debug stays. */
static int close_streams(void)
{
	AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct stat st;

	for (int i = 0; i < 3 && null >= 0; i++) {
		if (i == 2 && (log_enabled() || (fstat(i, &st) == 0 &&
						 (S_ISFIFO(st.st_mode) || isatty(i)))))
			continue;
		if (dup2(null, i) < 0)
			return -errno;
	}
	return null < 0 ? -errno : 0;
}

static int by_fd(const void *a, const void *b)
{
	return ((const struct held *)a)->fd - ((const struct held *)b)->fd;
}

int descriptors_keep_only(const struct viewmounts *m, struct held *v, size_t n)
{
	AUTO_CLOSE int cwd = -1;
	unsigned next = 3;
	int r = close_streams();

	if (r < 0)
		return r;
	qsort(v, n, sizeof(*v), by_fd);
	for (size_t i = 0; i < n; i++) {
		if (v[i].fd < 0)
			continue;
		if ((unsigned)v[i].fd > next &&
		    close_range(next, (unsigned)v[i].fd - 1, 0) < 0)
			return -errno;
		next = (unsigned)v[i].fd + 1;
	}
	if (close_range(next, ~0U, 0) < 0)
		return -errno;
	for (size_t i = 0; i < n && r == 0; i++)
		r = v[i].fd < 0 ? 0 : check(m, &v[i]);
	if (r == 0) {
		cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = cwd < 0 ? -errno : check_dir(m, cwd, HOLD_INSIDE);
	}
	return r;
}
