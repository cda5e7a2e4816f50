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

int btrfs_destroy(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args args = { 0 };

	if (strlen(name) >= sizeof(args.name))
		return -ENAMETOOLONG;
	memcpy(args.name, name, strlen(name));
	return ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &args) < 0 ? -errno : 0;
}
