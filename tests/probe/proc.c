/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes: PID 1 of the sandbox, the host's, and what we inherited. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

/* The argument is appended to /proc/1/: "root/etc/passwd", "environ", "mem", ... */
static int try_pid1_read(const char *rest)
{
	char path[4096], c;
	int fd;

	snprintf(path, sizeof(path), "/proc/1/%s", rest);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (read(fd, &c, 1) < 0 && errno != EISDIR)
		return -errno;
	return 0;
}

static int try_pid1_write(const char *rest)
{
	char path[4096];

	snprintf(path, sizeof(path), "/proc/1/%s", rest);
	return probe_write_file(path, "PROBE");
}

/* Reads only a link: what it names may say nothing. */
static int try_pid1_readlink(const char *rest)
{
	char path[4096], target[4096];

	snprintf(path, sizeof(path), "/proc/1/%s", rest);
	return probe_rc(readlink(path, target, sizeof(target)));
}

/* Opens any descriptor of PID 1 through /proc. */
static int try_pid1_fds(const char *arg)
{
	char path[64];
	int n, fd, last = -ENOENT;

	(void)arg;
	for (n = 0; n < 64; n++) {
		snprintf(path, sizeof(path), "/proc/1/fd/%d", n);
		fd = open(path, O_RDONLY | O_NONBLOCK);
		if (fd >= 0) {
			probe_say("ok(%d)", n);
			return PROBE_SAID;
		}
		if (errno != ENOENT)
			last = -errno;
	}
	return last;
}

static int try_pid1_getfd(const char *arg)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0), n, last = -EBADF;

	(void)arg;
	if (pidfd < 0)
		return -errno;
	for (n = 0; n < 64; n++) {
		if (syscall(SYS_pidfd_getfd, pidfd, n, 0) >= 0) {
			probe_say("ok(%d)", n);
			return PROBE_SAID;
		}
		if (errno != EBADF)
			last = -errno;
	}
	return last;
}

static int try_pid1_ptrace(const char *arg)
{
	(void)arg;
	return probe_rc(ptrace(PTRACE_SEIZE, 1, 0, 0));
}

static int try_pid1_vm(const char *arg)
{
	char byte = 0;
	struct iovec local = { &byte, 1 }, remote = { &byte, 1 };

	(void)arg;
	return probe_rc(process_vm_writev(1, &local, 1, &remote, 1, 0));
}

/* Allowed, but without effect: PID 1 must live on. */
static int try_pid1_kill(const char *arg)
{
	(void)arg;
	return probe_rc(kill(1, SIGKILL));
}

static int try_pid1_setns(const char *ns)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/1/ns/%s", ns);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	return probe_rc(syscall(SYS_setns, fd, 0));
}

static int try_pid1_setns_pidfd(const char *arg)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

	(void)arg;
	if (pidfd < 0)
		return -errno;
	return probe_rc(syscall(SYS_setns, pidfd, 0x10000000 | 0x00020000));
}

static int try_kill(const char *pid)
{
	return probe_rc(kill((pid_t)atol(pid), 0));
}

/* How many processes /proc shows. */
static int try_processes(const char *arg)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	int n = 0;

	(void)arg;
	if (!d)
		return -errno;
	while ((de = readdir(d)))
		n += de->d_name[0] >= '1' && de->d_name[0] <= '9';
	closedir(d);
	probe_say("%d", n);
	return PROBE_SAID;
}

/* Descriptors beyond the standard three. */
static int try_descriptors(const char *arg)
{
	int fd, n = 0;

	(void)arg;
	for (fd = 3; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	probe_say("%d", n);
	return PROBE_SAID;
}

/* Reopens a standard stream for writing, and overwrites what it is. */
static int try_stdio_write(const char *fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%s", fd);
	return probe_write_file(path, "PROBE");
}

/* Walks out of a directory that a standard stream may be. */
static int try_stdio_openat(const char *fd)
{
	return probe_rc(openat(atoi(fd), "..", O_RDONLY));
}

static int try_tiocsti(const char *path)
{
	int fd = *path ? open(path, O_RDWR | O_NOCTTY) : 0;
	char c = ' ';

	if (fd < 0)
		return -errno;
	return probe_rc(ioctl(fd, TIOCSTI, &c));
}

static int try_tioclinux(const char *path)
{
	int fd = *path ? open(path, O_RDWR | O_NOCTTY) : 0;
	/* Subcode 12 asks which console is in front: harmless where it is permitted. */
	char c = 12;

	if (fd < 0)
		return -errno;
	return probe_rc(ioctl(fd, TIOCLINUX, &c));
}

static int try_shm(const char *key)
{
	return probe_rc(shmget((key_t)atol(key), 0, 0));
}

const struct probe probes_proc[] = {
	{ "pid1-read", try_pid1_read },
	{ "pid1-write", try_pid1_write },
	{ "pid1-readlink", try_pid1_readlink },
	{ "pid1-fds", try_pid1_fds },
	{ "pid1-getfd", try_pid1_getfd },
	{ "pid1-ptrace", try_pid1_ptrace },
	{ "pid1-vm", try_pid1_vm },
	{ "pid1-kill", try_pid1_kill },
	{ "pid1-setns", try_pid1_setns },
	{ "pid1-setns-pidfd", try_pid1_setns_pidfd },
	{ "kill", try_kill },
	{ "processes", try_processes },
	{ "descriptors", try_descriptors },
	{ "stdio-write", try_stdio_write },
	{ "stdio-openat", try_stdio_openat },
	{ "tiocsti", try_tiocsti },
	{ "tioclinux", try_tioclinux },
	{ "shm", try_shm },
	{ NULL, NULL },
};
