/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int mount_clone(int dirfd, const char *path, bool recursive, uint64_t attrs)
{
	unsigned flags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW;
	struct mount_attr ma = { .attr_set = attrs };
	AUTO_CLOSE int fd = -1;

	if (recursive)
		flags |= AT_RECURSIVE;
	fd = open_tree(dirfd, path, flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!attrs)
		return TAKE_FD(fd);
	if (attrs & (MOUNT_ATTR_NOATIME | MOUNT_ATTR_STRICTATIME))
		ma.attr_clr = MOUNT_ATTR__ATIME;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &ma,
			  sizeof(ma)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* The reason is in the file's own log, one message per read: "e overlay: …". */
static void read_reason(int fs, char *why, size_t whylen)
{
	ssize_t n;

	if (!why || !whylen)
		return;
	n = read(fs, why, whylen - 1);
	why[n > 0 ? n : 0] = '\0';
	why[strcspn(why, "\n")] = '\0';
	if (strncmp(why, "e ", 2) == 0)
		memmove(why, why + 2, strlen(why) - 1);
}

int mount_new(const char *fstype, const char *const *opts, uint64_t attrs, char *why,
	      size_t whylen)
{
	AUTO_CLOSE int fs = fsopen(fstype, FSOPEN_CLOEXEC);
	int r, m;

	if (why && whylen)
		why[0] = '\0';
	if (fs < 0)
		return -errno;
	for (; opts && *opts; opts += 2) {
		bool flag = opts[1][0] == '\0';

		if (fsconfig(fs, flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING, opts[0],
			     flag ? NULL : opts[1], 0) < 0)
			goto failed;
	}
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		goto failed;
	m = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attrs);
	if (m < 0)
		goto failed;
	return m;
failed:
	r = -errno;
	read_reason(fs, why, whylen);
	return r;
}

int mount_close(int fd)
{
	struct mount_attr ma = { .attr_set = MOUNT_ATTR_RDONLY };

	return mount_setattr(fd, "", AT_EMPTY_PATH, &ma, sizeof(ma)) < 0 ? -errno : 0;
}

int mount_bound(int fd, uint64_t bytes)
{
	AUTO_CLOSE int fs = fspick(fd, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
	struct statvfs v;
	char size[32];

	if (fs < 0 || fstatvfs(fd, &v) < 0)
		return -errno;
	bytes += (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
	snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
		return -errno;
	return 0;
}

int mount_attach(int fd, int target)
{
	if (move_mount(fd, "", target, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/*
 * Layers are named through /proc/self/fd: no escaping of ':' and ',' in paths, no path
 * that could change, nothing of the host's layout in the sandbox's /proc/mounts; and it
 * works on kernels that do not take descriptors as layers yet (before 6.13).
 */
enum { NO_UPPER = 8 }; /* where the options of an upper begin */

int mount_overlay(const struct overlay_spec *o, char *why, size_t whylen)
{
	char lower[96] = "", upper[32], work[32];
	const char *opts[] = { "lowerdir",     lower,	   "userxattr", "",
			       "redirect_dir", "nofollow", "index",	"off",
			       "upperdir",     upper,	   "workdir",	work,
			       "volatile",     "",	   NULL };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(o->lower) && o->lower[i] >= 0; i++)
		n += (size_t)snprintf(lower + n, sizeof(lower) - n, "%s/proc/self/fd/%d",
				      i ? ":" : "", o->lower[i]);
	snprintf(upper, sizeof(upper), "/proc/self/fd/%d", o->upper);
	snprintf(work, sizeof(work), "/proc/self/fd/%d", o->work);
	if (o->upper < 0)
		opts[NO_UPPER] = NULL;
	return mount_new("overlay", opts, o->attrs, why, whylen);
}

int mount_pivot(int newroot)
{
	if (fchdir(newroot) < 0)
		return -errno;
	/* Stacks the new root on the old one in place: no directory for the old root. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return -errno;
	if (umount2(".", MNT_DETACH) < 0)
		return -errno;
	return chdir("/") < 0 ? -errno : 0;
}
