/* SPDX-License-Identifier: Apache-2.0 */
#include "host/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "host/base_running.h"
#include "sys/ns.h"

/* A command that is over sooner leaves no time for anybody to touch what it changed. */
enum { SOON_MS = 50 };

/* The processors are the command's; but whoever ran it waits for the notes. */
enum { NICENESS = 5 };

/* Nothing of ours is to live on in it: locks, pipes, the journal. */
static _Noreturn void testify(const struct observer *w, int stop, int done)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;

	stop = fcntl(stop, F_DUPFD_CLOEXEC, 100);
	done = fcntl(done, F_DUPFD_CLOEXEC, 100);
	if (null < 0 || stop < 0 || done < 0)
		_exit(1);
	/* Signals for the job are for its leader, which ends this process. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	dup3(stop, 3, O_CLOEXEC);
	dup3(done, 4, O_CLOEXEC);
	close_range(5, ~0U, 0);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	/* Root has a layer on every mount, also on those that somebody wants to take away. */
	if (geteuid() == 0)
		ns_own_mounts();
	FAULT_NEVER();
	base_note_running(&w->t->rec, 3, 4);
	_exit(0);
}

static void start(struct observer *w)
{
	int stop[2], done[2];

	if (pipe2(stop, O_CLOEXEC) < 0)
		return;
	if (pipe2(done, O_CLOEXEC) < 0) {
		close(stop[0]);
		close(stop[1]);
		return;
	}
	w->pid = fork();
	if (w->pid == 0) {
		close(stop[1]);
		close(done[0]);
		testify(w, stop[0], done[1]);
	}
	close(stop[0]);
	close(done[1]);
	w->stop = stop[1];
	w->done = done[0];
}

static void on_time(void *arg)
{
	struct observer *w = arg;

	cleanup_close(&w->side.fd);
	w->side.fd = -1;
	start(w);
}

void observer_begin(struct observer *w, const struct txn *t)
{
	const struct itimerspec soon = { .it_value.tv_nsec = SOON_MS * 1000000L };

	*w = (struct observer){ .t = t, .stop = -1, .done = -1 };
	w->side = (struct run_side){ .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
				     .ready = on_time,
				     .arg = w };
	if (w->side.fd >= 0)
		timerfd_settime(w->side.fd, 0, &soon, NULL);
}

void observer_end(struct observer *w)
{
	char none;

	if (!w->t)
		return;
	cleanup_close(&w->side.fd);
	cleanup_close(&w->stop);
	while (w->done >= 0 && read(w->done, &none, 1) < 0 && errno == EINTR)
		;
	cleanup_close(&w->done);
	/* A child that is still ending has no parent when we are gone. */
	if (w->pid > 0)
		waitpid(w->pid, NULL, WNOHANG);
	*w = (struct observer){ .side.fd = -1 };
}
