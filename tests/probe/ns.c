/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts, here and in a user namespace of our own, where we have every capability. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static void map_id(const char *file, unsigned id)
{
	char text[64];

	snprintf(text, sizeof(text), "0 %u 1\n", id);
	probe_write_file(file, text);
}

/* A nested user and mount namespace in which we are root. */
static int nest(void)
{
	unsigned uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	probe_write_file("/proc/self/setgroups", "deny");
	map_id("/proc/self/uid_map", uid);
	map_id("/proc/self/gid_map", gid);
	return 0;
}

static int do_umount(const char *path)
{
	return probe_rc(umount2(path, MNT_DETACH));
}

static int do_remount_rw(const char *path)
{
	struct statvfs vfs;

	if (statvfs(path, &vfs) < 0)
		return -errno;
	if (mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL) < 0)
		return -errno;
	/* The call may succeed without giving anything: only the flag counts. */
	return statvfs(path, &vfs) == 0 && (vfs.f_flag & ST_RDONLY) ? -EROFS : 0;
}

/* Binds "/" without what is mounted on it and looks for the path in it. */
static int do_uncover(const char *path)
{
	char inside[4096];
	struct stat st;

	if (mkdir("probe-root", 0755) < 0 && errno != EEXIST)
		return -errno;
	if (mount("/", "probe-root", NULL, MS_BIND, NULL) < 0)
		return -errno;
	snprintf(inside, sizeof(inside), "probe-root%s", path);
	return probe_rc(lstat(inside, &st));
}

/* The same with everything, taking off the cover afterwards. */
static int do_rbind_uncover(const char *path)
{
	char inside[4096];
	struct stat st;

	if (mkdir("probe-root", 0755) < 0 && errno != EEXIST)
		return -errno;
	if (mount("/", "probe-root", NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	snprintf(inside, sizeof(inside), "probe-root%s", path);
	if (umount2(inside, MNT_DETACH) < 0)
		return -errno;
	return probe_rc(lstat(inside, &st));
}

/* An overlay with "/" below: would show what is beneath mounts. */
static int do_overlay(const char *path)
{
	char options[4096], inside[4096];
	struct stat st;

	mkdir("probe-up", 0755);
	mkdir("probe-wk", 0755);
	mkdir("probe-ovl", 0755);
	snprintf(options, sizeof(options),
		 "userxattr,lowerdir=/,upperdir=probe-up,workdir=probe-wk");
	if (mount("overlay", "probe-ovl", "overlay", 0, options) < 0)
		return -errno;
	snprintf(inside, sizeof(inside), "probe-ovl%s", path);
	return probe_rc(lstat(inside, &st));
}

static int do_mount_type(const char *type)
{
	if (mkdir("probe-mnt", 0755) < 0 && errno != EEXIST)
		return -errno;
	return probe_rc(mount("none", "probe-mnt", type, 0, NULL));
}

static int do_mount_device(const char *device)
{
	static const char *const types[] = { "ext4", "xfs", "btrfs" };
	size_t i;
	int rc = -EINVAL;

	if (mkdir("probe-mnt", 0755) < 0 && errno != EEXIST)
		return -errno;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		rc = probe_rc(mount(device, "probe-mnt", types[i], MS_RDONLY, NULL));
		if (rc == 0)
			return 0;
	}
	return rc;
}

static int do_pivot(const char *arg)
{
	(void)arg;
	return probe_rc(syscall(SYS_pivot_root, ".", "."));
}

static int do_shared(const char *path)
{
	return probe_rc(mount(NULL, path, NULL, MS_SHARED, NULL));
}

#define NESTED(fn)                              \
	static int nested_##fn(const char *arg) \
	{                                       \
		int rc = nest();                \
                                                \
		return rc ? rc : do_##fn(arg);  \
	}

NESTED(umount)
NESTED(remount_rw)
NESTED(uncover)
NESTED(rbind_uncover)
NESTED(overlay)
NESTED(mount_type)
NESTED(mount_device)
NESTED(pivot)

/* A cgroup namespace of our own shows the group we are in as the root of a hierarchy. */
static int try_nested_cgroup(const char *type)
{
	int rc = nest();

	if (rc)
		return rc;
	if (unshare(CLONE_NEWCGROUP) < 0)
		return -errno;
	return do_mount_type(type);
}

static int try_userns(const char *arg)
{
	(void)arg;
	return nest();
}

/* A child that begins in the group whose directory is given. */
static int try_clone_into_cgroup(const char *path)
{
	struct clone_args ca = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long pid;

	if (fd < 0)
		return -errno;
	ca.cgroup = (unsigned)fd;
	pid = syscall(SYS_clone3, &ca, sizeof(ca));
	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return -errno;
	waitpid((pid_t)pid, NULL, 0);
	return 0;
}

/* To mounts of our own, without those that we came with. @path is cut after its directory, which
 * is opened before. -> a descriptor of that; *name is the rest. */
static int away_from(char *path, const char **name)
{
	char *slash = strrchr(path, '/');
	int at, rc;

	if (!slash)
		return -EINVAL;
	*slash = '\0';
	*name = slash + 1;
	at = open(*path ? path : "/", O_PATH | O_DIRECTORY);
	rc = at < 0 ? -errno : nest();
	if (rc < 0)
		return rc;
	if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) < 0 || mkdir("/tmp/old", 0700) < 0 ||
	    syscall(SYS_pivot_root, "/tmp", "/tmp/old") < 0 || chdir("/") < 0 ||
	    umount2("/old", MNT_DETACH) < 0)
		return -errno;
	return at;
}

/*
 * There nothing is mounted on @path for us: the name can be removed by a descriptor from before,
 * and with it goes what others have there.
 */
static int try_nested_remove(const char *path)
{
	char dir[4096];
	const char *name;
	int at;

	snprintf(dir, sizeof(dir), "%s", path);
	at = away_from(dir, &name);
	if (at < 0)
		return at;
	if (unlinkat(at, name, AT_REMOVEDIR) == 0)
		return 0;
	return probe_rc(errno == ENOTDIR ? unlinkat(at, name, 0) : -1);
}

/* Or moved, with what others have there. */
static int try_nested_rename(const char *path)
{
	char dir[4096];
	const char *name;
	int at;

	snprintf(dir, sizeof(dir), "%s", path);
	at = away_from(dir, &name);
	return at < 0 ? at : probe_rc(renameat(at, name, at, "moved"));
}

const struct probe probes_ns[] = {
	{ "nested-remove", try_nested_remove },
	{ "nested-rename", try_nested_rename },
	{ "clone-into-cgroup", try_clone_into_cgroup },
	{ "userns", try_userns },
	{ "umount", do_umount },
	{ "remount-rw", do_remount_rw },
	{ "uncover", do_uncover },
	{ "rbind-uncover", do_rbind_uncover },
	{ "overlay", do_overlay },
	{ "mount-type", do_mount_type },
	{ "mount-device", do_mount_device },
	{ "pivot", do_pivot },
	{ "shared", do_shared },
	{ "nested-umount", nested_umount },
	{ "nested-remount-rw", nested_remount_rw },
	{ "nested-uncover", nested_uncover },
	{ "nested-rbind-uncover", nested_rbind_uncover },
	{ "nested-overlay", nested_overlay },
	{ "nested-mount-type", nested_mount_type },
	{ "nested-mount-device", nested_mount_device },
	{ "nested-pivot", nested_pivot },
	{ "nested-cgroup", try_nested_cgroup },
	{ NULL, NULL },
};
