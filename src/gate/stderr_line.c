/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/stderr_line.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* The caller may have opened a file for writing that only we may write to. */
static bool is_plain(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch (fs.f_type) {
	case OVERLAYFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case EXT4_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static bool is_stream(int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	       type == SOCK_STREAM &&
	       (domain == AF_UNIX || domain == AF_INET || domain == AF_INET6);
}

/*
 * Opens the stream anew: the flags of the process's own description must not change. A pipe of
 * another user (sudo -u, containers, CI) cannot be opened; newer kernels can write to it
 * without waiting all the same.
 */
static void write_now(int fd, const char *line)
{
	const struct iovec io = { .iov_base = (void *)(uintptr_t)line,
				  .iov_len = strlen(line) };
	AUTO_CLOSE int own = -1;
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	own = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own >= 0 ? write(own, line, strlen(line)) < 0
		     : pwritev2(fd, &io, 1, -1, RWF_NOWAIT) < 0)
		return;
}

void stderr_line(pid_t pid, const char *line)
{
	AUTO_CLOSE int pidfd = pidfd_open(pid, 0), fd = -1;
	struct stat st;

	if (pidfd < 0)
		pidfd = pidfd_open(pid, PIDFD_THREAD);
	if (pidfd < 0)
		return;
	fd = pidfd_getfd(pidfd, STDERR_FILENO, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return;
	if (S_ISSOCK(st.st_mode) && is_stream(fd))
		send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd)))
		write_now(fd, line);
	else if (S_ISREG(st.st_mode) && is_plain(fd) && write(fd, line, strlen(line)) < 0)
		return;
}
