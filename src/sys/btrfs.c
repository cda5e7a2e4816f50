/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/btrfs.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/buf.h"
#include "base/cleanup.h"

bool btrfs_is_subvolume(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstatfs(fd, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC &&
	       fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_ino == BTRFS_TOP;
}

int btrfs_snapshot(int source, int dir, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 args = { .fd = source };

	if (strlen(name) >= sizeof(args.name))
		return -ENAMETOOLONG;
	memcpy(args.name, name, strlen(name));
	return ioctl(dir, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0 ? -errno : 0;
}

/* How often the list is read again because a subvolume was moved or removed meanwhile. */
enum { TRIES_MAX = 100 };

/* The kernel gives a path that is empty or ends in a slash, and the name apart. */
static int tell_nested(int fd, struct btrfs_ioctl_ino_lookup_user_args *place,
		       btrfs_nested_fn *fn, void *arg)
{
	AUTO_FREE char *path = NULL;

	if (ioctl(fd, BTRFS_IOC_INO_LOOKUP_USER, place) == 0)
		path = xasprintf("%s%s", place->path, place->name);
	else if (errno != EACCES && errno != ENAMETOOLONG)
		return -errno;
	return fn(arg, path);
}

int btrfs_nested(int fd, btrfs_nested_fn *fn, void *arg)
{
	struct btrfs_ioctl_get_subvol_rootref_args found = { 0 };
	struct btrfs_ioctl_ino_lookup_user_args place;
	unsigned tries = 0;
	bool more;
	int r = 0;

	do {
		more = ioctl(fd, BTRFS_IOC_GET_SUBVOL_ROOTREF, &found) < 0;
		if (more && errno != EOVERFLOW)
			return -errno;
		for (size_t i = 0; i < found.num_items && r == 0; i++) {
			memset(&place, 0, sizeof(place));
			place.dirid = found.rootref[i].dirid;
			place.treeid = found.rootref[i].treeid;
			r = tell_nested(fd, &place, fn, arg);
		}
		/* A subvolume that was moved meanwhile may have been missed at its new place. */
		if (r == -ENOENT && tries++ < TRIES_MAX) {
			found.min_treeid = 0;
			more = true;
			r = 0;
		}
	} while (r == 0 && more);
	return r;
}

int btrfs_destroy(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args args = { 0 };

	if (strlen(name) >= sizeof(args.name))
		return -ENAMETOOLONG;
	memcpy(args.name, name, strlen(name));
	return ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args) < 0 ? -errno : 0;
}
