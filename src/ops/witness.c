/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "txn/seen.h"

/* A command that is over sooner leaves no time for anybody to touch what it changed. */
enum { SOON_MS = 50 };

/* Nothing of ours is to live on in it: locks, pipes, the journal. */
static _Noreturn void testify(const struct witness *w, int stop)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int changes = fcntl(w->changes, F_DUPFD_CLOEXEC, 100);
	sigset_t all;

	stop = fcntl(stop, F_DUPFD_CLOEXEC, 100);
	if (null < 0 || changes < 0 || stop < 0)
		_exit(1);
	/* What is meant for the job is for who leads it: he ends us. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	dup3(changes, 3, O_CLOEXEC);
	dup3(stop, 4, O_CLOEXEC);
	close_range(5, ~0U, 0);
	seen_note(&w->t->rec, 3, 4);
	_exit(0);
}

static void start(struct witness *w)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	w->pid = fork();
	if (w->pid == 0) {
		close(ends[1]);
		testify(w, ends[0]);
	}
	close(ends[0]);
	if (w->pid > 0) {
		w->stop = ends[1];
		return;
	}
	close(ends[1]);
	w->pid = 0;
}

/* The first change: not yet, but if the command is still there in a moment. */
static void on_change(void *arg)
{
	const struct itimerspec soon = { .it_value.tv_nsec = SOON_MS * 1000000L };
	struct witness *w = arg;

	if (!w->waiting) {
		w->waiting = true;
		w->side.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		if (w->side.fd >= 0)
			timerfd_settime(w->side.fd, 0, &soon, NULL);
		return;
	}
	cleanup_close(&w->side.fd);
	w->side.fd = -1;
	start(w);
}

void witness_begin(struct witness *w, const struct txn *t)
{
	*w = (struct witness){ .t = t, .stop = -1, .changes = seen_watch(&t->rec) };
	w->side = (struct run_side){ .fd = w->changes, .ready = on_change, .arg = w };
}

void witness_end(struct witness *w)
{
	if (!w->t)
		return;
	if (w->waiting)
		cleanup_close(&w->side.fd);
	cleanup_close(&w->changes);
	cleanup_close(&w->stop);
	while (w->pid > 0 && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*w = (struct witness){ 0 };
}
