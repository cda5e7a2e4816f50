/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/viewmounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* No tree of ours is deeper; a descriptor in one that is does not come from us. */
enum { UP_MAX = 4096 };

static bool mount_of(int fd, uint64_t *mount)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &x) < 0 ||
	    !(x.stx_mask & STATX_MNT_ID))
		return false;
	*mount = x.stx_mnt_id;
	return true;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* "36 35 98:0 / /home rw,nosuid - overlay none rw,…": spaces in names are escaped. */
static int read_mounts(struct viewmounts *m, FILE *f)
{
	static const char overlay[] = " - overlay ";
	AUTO_FREE char *line = NULL;
	size_t room = 0;
	char *end;

	errno = 0;
	while (getline(&line, &room, f) > 0) {
		uint64_t number = strtoull(line, &end, 10);

		if (end == line || *end != ' ')
			return -EBADMSG;
		if (!strstr(line, overlay))
			continue;
		if ((m->n & (m->n - 1)) == 0)
			m->v = xrealloc(m->v, (m->n ? 2 * m->n : 8) * sizeof(*m->v));
		m->v[m->n++] = number;
	}
	if (!feof(f))
		return errno ? -errno : -EIO;
	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_number);
	return 0;
}

static int look_at(pid_t pid, const char *what, struct stat *st)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, what);
	return stat(name, st) < 0 ? -errno : 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int viewmounts_note(struct viewmounts *m, pid_t pid)
{
	AUTO_FCLOSE FILE *f = NULL;
	char name[64];
	int r;

	*m = (struct viewmounts){ .root = -1 };
	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	m->root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->root < 0 || fstat(m->root, &m->root_is) < 0 ||
	    !mount_of(m->root, &m->root_mount))
		return errno ? -errno : -EIO;
	snprintf(name, sizeof(name), "/proc/%d/mountinfo", (int)pid);
	f = fopen(name, "re");
	r = f ? read_mounts(m, f) : -errno;
	if (r == 0)
		r = look_at(pid, "ns/user", &m->users);
	return r == 0 ? look_at(getpid(), "ns/pid", &m->processes) : r;
}

bool viewmounts_has(const struct viewmounts *m, int fd, uint64_t *mount)
{
	return m->n && mount_of(fd, mount) &&
	       bsearch(mount, m->v, m->n, sizeof(*m->v), by_number);
}

bool viewmounts_is_root(const struct viewmounts *m, int fd)
{
	struct stat st;
	uint64_t mount;

	return mount_of(fd, &mount) && mount == m->root_mount && fstat(fd, &st) == 0 &&
	       same(&st, &m->root_is);
}

bool viewmounts_users(const struct viewmounts *m, pid_t pid)
{
	struct stat st;

	return look_at(pid, "ns/user", &st) == 0 && same(&st, &m->users);
}

bool viewmounts_is_ours(const struct viewmounts *m, pid_t caller, pid_t target)
{
	struct stat st, own;

	if (target <= 0)
		return false;
	/* Who has a process namespace of its own numbers, and sees, only what is in there. */
	if (look_at(caller, "ns/pid", &st) == 0 && !same(&st, &m->processes))
		return false;
	/* Nobody else can get into the user namespace that we are in. */
	if (look_at(getpid(), "ns/user", &own) < 0)
		return true;
	switch (look_at(target, "ns/user", &st)) {
	case 0:
		return same(&st, &own);
	case -ENOENT:
	case -ESRCH:
		return false;
	default:
		return true;
	}
}

static bool same_place(int a, int b)
{
	uint64_t x, y;
	struct stat s, t;

	return mount_of(a, &x) && mount_of(b, &y) && x == y && fstat(a, &s) == 0 &&
	       fstat(b, &t) == 0 && same(&s, &t);
}

/* Where ".." leads from @fd in the end; -errno. */
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

static int by_fd(const void *a, const void *b)
{
	return ((const struct held *)a)->fd - ((const struct held *)b)->fd;
}

int viewmounts_hold(const struct viewmounts *m, struct held *v, size_t n)
{
	AUTO_CLOSE int cwd = -1;
	unsigned next = 0;
	int r = 0;

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
