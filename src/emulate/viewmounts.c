/* SPDX-License-Identifier: Apache-2.0 */
#include "emulate/viewmounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

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
	/*
	 * A process with a pid namespace of its own sees, and names, only the processes in
	 * there.
	 */
	if (look_at(caller, "ns/pid", &st) == 0 && !same(&st, &m->processes))
		return false;
	/* No other process can get into our user namespace. */
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
