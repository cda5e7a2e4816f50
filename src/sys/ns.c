/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/kernel.h"

pid_t ns_fork(unsigned long flags, int *pidfd)
{
	long r = syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, NULL, pidfd, NULL,
			 NULL);

	return r < 0 ? -errno : (pid_t)r;
}

pid_t ns_fork_into(unsigned long flags, int *pidfd, int cgroup)
{
	struct clone_args a = { .flags = flags | CLONE_PIDFD | CLONE_INTO_CGROUP,
				.pidfd = (uint64_t)(uintptr_t)pidfd,
				.exit_signal = SIGCHLD,
				.cgroup = (uint64_t)cgroup };
	long r = syscall(SYS_clone3, &a, sizeof(a));

	return r < 0 ? -errno : (pid_t)r;
}

static int write_once(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int ns_map_self(uid_t uid, gid_t gid)
{
	char line[64];
	int r;

	snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
	r = write_once("/proc/self/uid_map", line);
	if (r < 0)
		return r;
	/* The kernel wants this before it lets an unprivileged gid map be written. */
	r = write_once("/proc/self/setgroups", "deny\n");
	if (r < 0)
		return r;
	snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
	return write_once("/proc/self/gid_map", line);
}

int ns_map_all(pid_t pid)
{
	static const char all[] = "0 0 4294967295\n";
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	r = write_once(path, all);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)pid);
	return write_once(path, all);
}

static bool gained;

bool ns_has_override(void)
{
	return gained;
}

int ns_gain_override(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (gained || uid == 0)
		return -EALREADY;
	gained = true;
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	return ns_map_self(uid, gid);
}

int ns_try_override(int (*fn)(void *), void *arg)
{
	enum { YES = 255 };
	int status;
	pid_t pid;

	if (gained || geteuid() == 0)
		return -EACCES; /* it has been tried with all rights already */
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int r = ns_gain_override();

		if (r == 0)
			r = fn(arg);
		_exit(r > 0 ? YES : -r);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -EIO;
	return WEXITSTATUS(status) == YES ? 1 : -WEXITSTATUS(status);
}

struct rename_args {
	int fromdir, todir;
	const char *from, *to;
	unsigned flags;
};

static int do_rename(void *arg)
{
	const struct rename_args *r = arg;

	if (syscall(SYS_renameat2, r->fromdir, r->from, r->todir, r->to, r->flags) < 0)
		return -errno;
	return 0;
}

int ns_rename_override(int fromdir, const char *from, int todir, const char *to,
		       unsigned flags)
{
	struct rename_args args = { fromdir, todir, from, to, flags };

	return ns_try_override(do_rename, &args);
}

struct xattr_args {
	int fd;
	const char *attr;
	const void *value;
	size_t len;
};

/* By the descriptor: /proc/self is the child here. */
static int do_xattr(void *arg)
{
	const struct xattr_args *x = arg;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", x->fd);
	r = x->value ? setxattr(path, x->attr, x->value, x->len, 0)
		     : removexattr(path, x->attr);
	return r < 0 ? -errno : 0;
}

int ns_xattr_override(int fd, const char *attr, const void *value, size_t len)
{
	struct xattr_args args = { fd, attr, value, len };

	return ns_try_override(do_xattr, &args);
}

int ns_limit_pids(uint64_t n)
{
	/* Numbers below are not given a second time: see alloc_pid() in the kernel. */
	enum { RESERVED = 300 };
	AUTO_CLOSE int fd = -1;
	char text[24];
	int len;

	if (!kernel_is(6, 14) || getpid() != 1 || n > 1000000)
		return -EOPNOTSUPP;
	fd = open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = snprintf(text, sizeof(text), "%llu", (unsigned long long)n + RESERVED);
	return write(fd, text, (size_t)len) == len ? 0 : -errno;
}

int ns_forbid_cgroup(int sysctl)
{
	AUTO_CLOSE int fd = openat(sysctl, "max_cgroup_namespaces", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return write(fd, "0", 1) < 0 ? -errno : 0;
}

int ns_loopback_up(void)
{
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = { .ifr_name = "lo" };

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &lo) < 0)
		return -errno;
	lo.ifr_flags |= IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, &lo) < 0 ? -errno : 0;
}

int ns_own_mounts(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r = 0;

	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
		return -errno;
	if (uid)
		r = ns_map_self(uid, gid);
	if (r == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		r = -errno;
	return r;
}

int ns_new_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		return errno == ENOSYS ? 0 : -errno;
	return 0;
}
