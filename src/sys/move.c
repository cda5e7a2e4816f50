/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/move.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "sys/ns.h"

bool move_lacks(int err)
{
	return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP;
}

static bool look(int dir, const char *name, struct stat *st)
{
	return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * RENAME_NOREPLACE by hand: a link never replaces. Killed after it, both names are there, and
 * the next time only the old one goes. A directory is looked for and then moved.
 */
static int move_by_hand(int fromdir, const char *from, int todir, const char *to)
{
	struct stat a, b;
	int r = FAULT_POINT("swap.link");

	if (r < 0)
		return r;
	if (!look(fromdir, from, &a))
		return -errno;
	if (look(todir, to, &b)) {
		if (S_ISDIR(a.st_mode) || !is_same(&a, &b))
			return -EEXIST;
	} else if (S_ISDIR(a.st_mode) || linkat(fromdir, from, todir, to, 0) < 0) {
		return renameat(fromdir, from, todir, to) < 0 ? -errno : 0;
	}
	if (!FAULT_AT("swap.unlink") && unlinkat(fromdir, from, 0) == 0)
		return 0;
	r = -errno;
	if (r == -EACCES) /* not from here; the way around starts with one name */
		unlinkat(todir, to, 0);
	return r;
}

static int rename_here(int fromdir, const char *from, int todir, const char *to,
		       unsigned flags)
{
	if (!(flags && FAULT_AT("swap.flags")) &&
	    syscall(SYS_renameat2, fromdir, from, todir, to, flags) == 0)
		return 0;
	if (flags == RENAME_NOREPLACE && move_lacks(errno))
		return move_by_hand(fromdir, from, todir, to);
	return -errno;
}

/*
 * A directory that its owner may not write (mode 0555) lets nothing in or out, and does
 * not go elsewhere itself. Where a user namespace cannot help, it is opened up, and
 * gets its right mode with the rest of its attributes at the end.
 */
int move_name(int fromdir, const char *from, int todir, const char *to, unsigned flags)
{
	const int dirs[2] = { fromdir, todir };
	struct stat st;
	int r = FAULT_POINT("apply.rename");

	if (r < 0)
		return r;
	r = rename_here(fromdir, from, todir, to, flags);
	if (r != -EACCES)
		return r;
	r = ns_rename_override(fromdir, from, todir, to, flags);
	if (r != -EACCES && r != -EPERM && r != -ENOSPC && !(flags && move_lacks(-r)))
		return r;
	for (int i = 0; i < 2; i++)
		if (fstat(dirs[i], &st) == 0 && st.st_uid == geteuid() &&
		    (st.st_mode & 0300) != 0300 && fchmod(dirs[i], st.st_mode | 0700) < 0)
			return -errno;
	return rename_here(fromdir, from, todir, to, flags);
}
