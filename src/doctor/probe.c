/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/unotify.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { PATIENCE_MS = 5000, LAST_PATIENCE_MS = 1000 };

static int wait_eof(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

static int child_result(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -EINTR;
	return -WEXITSTATUS(status);
}

int probe_in_child(int (*fn)(void *arg), void *arg)
{
	int pipefd[2], r;
	pid_t pid;

	if (pipe2(pipefd, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		r = -errno;
		close(pipefd[0]);
		close(pipefd[1]);
		return r;
	}
	if (!pid) {
		/* The write end is never written to: its end of file, after the last
		 * process of the probe is gone, is the signal. */
		close(pipefd[0]);
		r = fn(arg);
		_exit(r < 0 && r > -256 ? -r : 0);
	}
	close(pipefd[1]);
	r = wait_eof(pipefd[0], PATIENCE_MS);
	if (r < 0) {
		kill(pid, SIGKILL);
		/* One that hangs in the kernel dies when the kernel lets it go, and is then
		 * nobody's child but init's: better than hanging with it. */
		if (!wait_eof(pipefd[0], LAST_PATIENCE_MS))
			child_result(pid);
	} else {
		r = child_result(pid);
	}
	close(pipefd[0]);
	return r;
}

static int write_file(const char *path, const char *text)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

static int map_self(uid_t uid, gid_t gid)
{
	char line[64];
	int r;

	r = write_file("/proc/self/setgroups", "deny");
	if (r < 0 && r != -ENOENT)
		return r;
	snprintf(line, sizeof(line), "%u %u 1", (unsigned)uid, (unsigned)uid);
	r = write_file("/proc/self/uid_map", line);
	if (r < 0)
		return r;
	snprintf(line, sizeof(line), "%u %u 1", (unsigned)gid, (unsigned)gid);
	return write_file("/proc/self/gid_map", line);
}

int probe_enter(int flags)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(flags) < 0)
		return -errno;
	if (flags & CLONE_NEWUSER) {
		r = map_self(uid, gid);
		if (r < 0)
			return r;
	}
	if (flags & CLONE_NEWNS && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	return 0;
}

bool probe_is_root(void)
{
	cap_flag_value_t on = CAP_CLEAR;
	cap_t caps;

	if (geteuid() != 0)
		return false;
	caps = cap_get_proc();
	if (!caps)
		return false;
	cap_get_flag(caps, CAP_SYS_ADMIN, CAP_EFFECTIVE, &on);
	cap_free(caps);
	return on == CAP_SET;
}

/* The flags of the namespace in which the sandbox's tree would be built. */
static int builder(int flags)
{
	return probe_is_root() ? flags : flags | CLONE_NEWUSER;
}

static int do_userns(void *arg)
{
	(void)arg;
	return probe_enter(CLONE_NEWUSER);
}

int probe_userns(void)
{
	return probe_in_child(do_userns, NULL);
}

static int do_userns_nested(void *arg)
{
	int r;

	(void)arg;
	r = probe_enter(CLONE_NEWUSER | CLONE_NEWNS);
	return r < 0 ? r : probe_enter(CLONE_NEWUSER | CLONE_NEWNS);
}

int probe_userns_nested(void)
{
	return probe_in_child(do_userns_nested, NULL);
}

static int do_namespace(void *arg)
{
	return probe_enter(builder(*(const int *)arg));
}

int probe_namespace(int clone_flag)
{
	return probe_in_child(do_namespace, &clone_flag);
}

static int do_mount(void *arg)
{
	int r;

	(void)arg;
	r = probe_enter(builder(CLONE_NEWNS));
	if (r < 0)
		return r;
	/* Any directory will do: the mount is seen by this child alone. */
	if (mount("stet", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") < 0)
		return -errno;
	return 0;
}

int probe_mount(void)
{
	return probe_in_child(do_mount, NULL);
}

static int do_proc_inner(void *arg)
{
	(void)arg;
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	return 0;
}

static int do_proc(void *arg)
{
	int r;

	r = probe_enter(builder(CLONE_NEWNS | CLONE_NEWPID));
	/* Only children of the unsharing process are in the new PID namespace. */
	return r < 0 ? r : probe_in_child(do_proc_inner, arg);
}

int probe_proc(void)
{
	return probe_in_child(do_proc, NULL);
}

static int do_fstype(void *arg)
{
	AUTO_CLOSE int fd = -1;
	int r;

	r = probe_enter(builder(CLONE_NEWNS));
	if (r < 0)
		return r;
	fd = fsopen(arg, FSOPEN_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

int probe_fstype(const char *name)
{
	char copy[32];

	snprintf(copy, sizeof(copy), "%s", name);
	return probe_in_child(do_fstype, copy);
}

int probe_fsopen(void)
{
	return probe_fstype("tmpfs");
}

int probe_fstype_listed(const char *name)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/filesystems", "re");
	char line[256], *word;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		word = strrchr(line, '\t');
		if (!strcmp(word ? word + 1 : line, name))
			return 0;
	}
	return -ENODEV;
}

static int clone_root(void)
{
	int r, fd;

	r = probe_enter(builder(CLONE_NEWNS));
	if (r < 0)
		return r;
	fd = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	return fd < 0 ? -errno : fd;
}

static int do_open_tree(void *arg)
{
	AUTO_CLOSE int fd = clone_root();

	(void)arg;
	return fd < 0 ? fd : 0;
}

int probe_open_tree(void)
{
	return probe_in_child(do_open_tree, NULL);
}

static int do_mount_setattr(void *arg)
{
	AUTO_CLOSE int fd = clone_root();
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	(void)arg;
	if (fd < 0)
		return fd;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	return 0;
}

int probe_mount_setattr(void)
{
	return probe_in_child(do_mount_setattr, NULL);
}

int probe_pidfd(void)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	return fd < 0 ? -errno : 0;
}

int probe_close_range(void)
{
	/* No descriptor has this number: the call is tried and closes nothing. */
	return syscall(SYS_close_range, ~0U, ~0U, 0) < 0 ? -errno : 0;
}

int probe_openat2(void)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	AUTO_CLOSE int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	return fd < 0 ? -errno : 0;
}

int probe_seccomp(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? -errno
									      : 0;
}

/* Installs a filter that allows everything, with a listener; returns the listener. */
static int listener(unsigned long flags)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &allow };
	long fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, &prog);
	return fd < 0 ? -errno : (int)fd;
}

static int do_notify(void *arg)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;
	AUTO_CLOSE int fd = -1;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		return -errno;
	fd = listener(*(const unsigned long *)arg);
	return fd < 0 ? fd : 0;
}

int probe_notify(void)
{
	unsigned long flags = 0;

	return probe_in_child(do_notify, &flags);
}

int probe_notify_killable(void)
{
	unsigned long flags = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	return probe_in_child(do_notify, &flags);
}

static int do_addfd(void *arg)
{
	AUTO_CLOSE int fd = listener(0);
	struct seccomp_notif_addfd add = { .srcfd = (uint32_t)fd };

	(void)arg;
	if (fd < 0)
		return fd;
	/* There is no such request: a kernel that knows the call says so with ENOENT. */
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

int probe_notify_addfd(void)
{
	return probe_in_child(do_addfd, NULL);
}

static int do_sync_wake(void *arg)
{
	AUTO_CLOSE int fd = listener(0);

	(void)arg;
	if (fd < 0)
		return fd;
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) <
	    0)
		return -errno;
	return 0;
}

int probe_notify_sync_wake(void)
{
	return probe_in_child(do_sync_wake, NULL);
}

static int do_trace(void *arg)
{
	pid_t pid = fork();
	int r;

	(void)arg;
	if (pid < 0)
		return -errno;
	if (pid == 0)
		for (;;)
			pause();
	r = ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) < 0 ? -errno : 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

int probe_trace(void)
{
	return probe_in_child(do_trace, NULL);
}

int probe_landlock(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
			   LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? -errno : (int)abi;
}
