/* SPDX-License-Identifier: Apache-2.0 */
#include "tty/restorer.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE 2 /* s; output may have been stopped for good, by Ctrl-S */

/* A shell that was faster has its own modes by now, and ours would break its line editor. */
static bool still_ours(const struct tty *t)
{
	struct termios raw = t->modes, now;

	if (!t->raw || tcgetattr(t->fd, &now))
		return false;
	cfmakeraw(&raw);
	return now.c_iflag == raw.c_iflag && now.c_oflag == raw.c_oflag &&
	       now.c_cflag == raw.c_cflag && now.c_lflag == raw.c_lflag;
}

static void put_back(const struct restorer_page *p)
{
	char text[MODES_RESET_MAX];
	ssize_t n;

	if (!p->tty.raw)
		return;
	alarm(PATIENCE);
	if (still_ours(&p->tty))
		tcsetattr(p->tty.fd, TCSANOW, &p->tty.modes);
	n = (ssize_t)modes_reset(&p->modes, text);
	if (n > 0 && write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(1);
}

static _Noreturn void keep(const struct restorer_page *p, pid_t parent)
{
	sigset_t all, death;

	/* In a session of its own it is neither stopped nor killed with our job, and the
	 * terminal asks nobody's leave. */
	setsid();
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGALRM, SIG_DFL);
	close_range(2, ~0U, 0);
	/*
	 * The signal comes before our parent hears of our death: mostly no shell is there yet.
	 */
	prctl(PR_SET_PDEATHSIG, SIGUSR1);
	sigemptyset(&death);
	sigaddset(&death, SIGUSR1);
	while (getppid() == parent)
		sigwaitinfo(&death, NULL);
	put_back(p);
	_exit(0);
}

int restorer_start(struct restorer *k, const struct tty *t, const struct modes *m)
{
	struct restorer_page *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t self = getpid(), pid;

	if (p == MAP_FAILED)
		return -errno;
	p->tty = *t;
	p->modes = *m;
	pid = fork();
	if (pid == 0)
		keep(p, self);
	if (pid < 0) {
		munmap(p, sizeof(*p));
		return -EAGAIN;
	}
	*k = (struct restorer){ p, pid };
	return 0;
}

void restorer_stop(struct restorer *k)
{
	if (!k->page)
		return;
	kill(k->pid, SIGKILL);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap(k->page, sizeof(*k->page));
	*k = (struct restorer){ 0 };
}
