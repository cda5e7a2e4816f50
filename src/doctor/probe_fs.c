/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doctor/probe.h"
#include "doctor/probe_fs.h"
#include "layer/overlay.h"

enum { BTRFS_ROOT_INO = 256, MAX_DEPTH = 8 };

static const struct {
	unsigned long magic;
	const char *name;
} types[] = {
	{ EXT4_SUPER_MAGIC, "ext4" },
	{ XFS_SUPER_MAGIC, "xfs" },
	{ BTRFS_SUPER_MAGIC, "btrfs" },
	{ TMPFS_MAGIC, "tmpfs" },
	{ OVERLAYFS_SUPER_MAGIC, "overlay" },
	{ F2FS_SUPER_MAGIC, "f2fs" },
	{ NFS_SUPER_MAGIC, "nfs" },
	{ FUSE_SUPER_MAGIC, "fuse" },
	{ V9FS_MAGIC, "9p" },
	{ MSDOS_SUPER_MAGIC, "vfat" },
	{ CIFS_SUPER_MAGIC, "cifs" },
	{ SMB2_SUPER_MAGIC, "smb2" },
	{ ECRYPTFS_SUPER_MAGIC, "ecryptfs" },
	{ CEPH_SUPER_MAGIC, "ceph" },
	{ 0x2fc12fc1, "zfs" },
	{ 0xca451a4e, "bcachefs" },
	{ SQUASHFS_MAGIC, "squashfs" },
	{ PROC_SUPER_MAGIC, "proc" },
	{ SYSFS_MAGIC, "sysfs" },
};

static const char *type_name(unsigned long magic)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].magic == magic)
			return types[i].name;
	return "unknown";
}

/* The tree is our own, but the overlay leaves directories in it that nobody may enter. */
static int remove_tree(int dirfd, const char *name, int depth)
{
	AUTO_CLOSEDIR DIR *d = NULL;
	struct dirent *ent;
	int fd, r = 0;

	if (!unlinkat(dirfd, name, 0) || errno == ENOENT)
		return 0;
	if (!unlinkat(dirfd, name, AT_REMOVEDIR))
		return 0;
	if (depth >= MAX_DEPTH)
		return -ELOOP;
	if (fchmodat(dirfd, name, 0700, 0) < 0)
		return -errno;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		r = -errno;
		close(fd);
		return r;
	}
	while ((ent = readdir(d)))
		if (strcmp(ent->d_name, ".") && strcmp(ent->d_name, ".."))
			r = remove_tree(fd, ent->d_name, depth + 1);
	if (unlinkat(dirfd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

static int make_file(int dirfd, const char *name)
{
	char block[4096] = "stet";
	AUTO_CLOSE int fd = openat(
		dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return write(fd, block, sizeof(block)) < 0 ? -errno : 0;
}

static int try_exchange(int dirfd)
{
	if (renameat2(dirfd, "a", dirfd, "b", RENAME_EXCHANGE) < 0)
		return -errno;
	return 0;
}

static int try_reflink(int dirfd)
{
	AUTO_CLOSE int from = openat(dirfd, "a", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int to = openat(dirfd, "b", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	if (from < 0 || to < 0)
		return -errno;
	return ioctl(to, FICLONE, from) < 0 ? -errno : 0;
}

struct overlay_try {
	int dirfd;
	const char *step; /* static text: parent and child are the same image */
};

static int step_failed(struct overlay_try *t, const char *step)
{
	int r = -errno;

	t->step = step;
	return r;
}

/* After the deletions below the upper must say so in the overlay's own notation. */
static int check_upper(struct overlay_try *t)
{
	struct stat st;
	char value[8];

	if (lstat("up/file", &st) < 0)
		return step_failed(t, "deleting a file");
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(0, 0)) {
		errno = EOPNOTSUPP;
		return step_failed(t, "marking a deletion");
	}
	if (lgetxattr("up/dir", OVERLAY_OPAQUE, value, sizeof(value)) != 1 ||
	    value[0] != 'y') {
		errno = EOPNOTSUPP;
		return step_failed(t, "marking a replaced directory");
	}
	return 0;
}

static int do_overlay(void *arg)
{
	struct overlay_try *t = arg;
	int r;

	/* Relative names need no escaping in the option string. The descriptor belongs to the
	 * old mount namespace; a current directory is taken along into the new one. */
	if (fchdir(t->dirfd) < 0)
		return step_failed(t, "entering the directory");
	r = probe_enter(CLONE_NEWNS | (probe_is_root() ? 0 : CLONE_NEWUSER));
	if (r < 0) {
		errno = -r;
		return step_failed(t, "making a mount namespace");
	}
	if (mount("stet", "mnt", "overlay", MS_NOSUID | MS_NODEV,
		  "lowerdir=lo,upperdir=up,workdir=wk,volatile,userxattr") < 0)
		return step_failed(t, "mounting");
	r = make_file(AT_FDCWD, "mnt/new");
	if (r < 0) {
		errno = -r;
		return step_failed(t, "creating a file");
	}
	if (unlink("mnt/file") < 0)
		return step_failed(t, "deleting a file");
	if (rmdir("mnt/dir") < 0 || mkdir("mnt/dir", 0700) < 0)
		return step_failed(t, "replacing a directory");
	return check_upper(t);
}

static int make_layers(int dirfd)
{
	static const char *const dirs[] = { "lo", "up", "wk", "mnt", "lo/dir" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(dirfd, dirs[i], 0700) < 0)
			return -errno;
	return make_file(dirfd, "lo/file");
}

static int try_overlay(int dirfd, const char **step)
{
	struct overlay_try *t;
	int r;

	r = make_layers(dirfd);
	if (r < 0) {
		*step = "making the layers";
		return r;
	}
	t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		 0);
	if (t == MAP_FAILED)
		return -errno;
	t->dirfd = dirfd;
	r = probe_in_child(do_overlay, t);
	if (r < 0 && t->step)
		*step = t->step;
	munmap(t, sizeof(*t));
	return r;
}

static int try_all(int dirfd, struct probe_fs *fs)
{
	int r;

	r = make_file(dirfd, "a");
	if (!r)
		r = make_file(dirfd, "b");
	if (r < 0)
		return r;
	fs->exchange = try_exchange(dirfd);
	fs->reflink = try_reflink(dirfd);
	fs->overlay = try_overlay(dirfd, &fs->step);
	return 0;
}

static int make_temp(int dirfd, char name[32])
{
	int i;

	for (i = 0; i < 100; i++) {
		snprintf(name, 32, ".stet-probe-%d-%d", (int)getpid(), i);
		if (!mkdirat(dirfd, name, 0700))
			return openat(dirfd, name,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

static int examine(int dirfd, struct probe_fs *fs, struct stat *st)
{
	struct statfs sfs;
	struct statvfs svfs;

	if (fstatfs(dirfd, &sfs) < 0 || fstatvfs(dirfd, &svfs) < 0 ||
	    fstat(dirfd, st) < 0)
		return -errno;
	fs->magic = (long)sfs.f_type;
	fs->type = type_name((unsigned long)sfs.f_type & 0xffffffffUL);
	fs->free_bytes = (uint64_t)svfs.f_bavail * svfs.f_frsize;
	fs->free_inodes = svfs.f_favail;
	fs->inodes = svfs.f_files;
	fs->subvolume = fs->magic == (long)BTRFS_SUPER_MAGIC &&
			st->st_ino == BTRFS_ROOT_INO;
	return 0;
}

int probe_fs(const char *dir, struct probe_fs *fs)
{
	AUTO_CLOSE int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int temp = -1;
	struct timespec times[2];
	char name[32];
	struct stat st;
	int r;

	*fs = (struct probe_fs){ .type = "unknown", .step = "" };
	if (dirfd < 0)
		return -errno;
	r = examine(dirfd, fs, &st);
	if (r < 0)
		return r;
	temp = make_temp(dirfd, name);
	if (temp < 0) {
		fs->write = fs->overlay = fs->exchange = fs->reflink = -errno;
		return 0;
	}
	r = try_all(temp, fs);
	if (r < 0)
		fs->write = fs->overlay = fs->exchange = fs->reflink = r;
	remove_tree(dirfd, name, 0);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	/* Only the owner may, and for anybody else it does not matter. */
	(void)futimens(dirfd, times);
	return 0;
}
