/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that reads our output must not wait for this one: the pipes are closed. */
static void let_go(int keep)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	if (keep > 3)
		close_range(3, (unsigned)keep - 1, 0);
	close_range(keep >= 3 ? (unsigned)keep + 1 : 3, ~0U, 0);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	if (keep >= 0)
		fcntl(keep, F_SETFD, 0);
}

int detach_exec(char *const argv[], int keep)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		/*
		 * Forks twice: the working process has no parent that would have to wait for
		 * it.
		 */
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		let_go(keep);
		setpriority(PRIO_PROCESS, 0, 19);
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

pid_t serve_exec(char *const argv[], int keep)
{
	pid_t pid = fork();
	sigset_t none;

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	setsid();
	let_go(keep);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", argv);
	_exit(1);
}
