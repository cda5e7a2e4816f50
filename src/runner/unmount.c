/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/unmount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"

/* The next command should get the processors first; but a process may be waiting for us. */
enum { NICENESS = 5 };

/* The descriptors that the process keeps. */
enum { FD_MOUNT, FD_LOCK, FD_TURN, FD_COUNT };

static int lock_layer(const char *dir, int how)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	do
		r = flock(fd, how);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* Runs in the child, which must not keep anything else of ours: locks, pipes, output. */
_Noreturn static void outlast(int mount, int lock, int turn)
{
	int fd[] = { mount, lock, turn };
	sigset_t all;
	char none;

	/* Signals for the job are for its leader. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	FAULT_NEVER();
	for (int i = 0; i < FD_COUNT; i++) {
		fd[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 100);
		if (fd[i] < 0)
			_exit(1);
	}
	for (int i = 0; i < FD_COUNT; i++)
		dup3(fd[i], i, O_CLOEXEC);
	close_range(FD_COUNT, ~0U, 0);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	/*
	 * The process that closes the last descriptor does the work: that must not be our
	 * parent.
	 */
	while (read(FD_TURN, &none, 1) < 0 && errno == EINTR)
		;
	close(FD_MOUNT);
	_exit(0); /* and now the lock */
}

void unmount_later(int mount, const char *dir)
{
	AUTO_CLOSE int m = mount, lock = lock_layer(dir, LOCK_SH | LOCK_NB);
	int turn[2];

	if (lock < 0 || pipe2(turn, O_CLOEXEC) < 0)
		return;
	if (fork() == 0) {
		close(turn[1]);
		outlast(m, lock, turn[0]);
	}
	close(turn[0]);
	cleanup_close(&m);
	m = -1;
	close(turn[1]);
}

void unmount_await(const char *dir)
{
	int fd = lock_layer(dir, LOCK_EX);

	if (fd >= 0)
		close(fd);
}
