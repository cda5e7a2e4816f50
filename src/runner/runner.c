/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/runner.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "runner/ctl.h"
#include "runner/init.h"
#include "runner/relay.h"
#include "sys/ns.h"

const char *run_reason_name(enum run_reason r)
{
	static const char *const names[] = { [RUN_EXIT] = "exit",
					     [RUN_SIGNAL] = "signal",
					     [RUN_TIMEOUT] = "timeout",
					     [RUN_ERROR] = "error",
					     [RUN_POLICY] = "policy" };

	return names[r];
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int cannot_clone(int r, struct err *e)
{
	err_sys(e, r, "cannot make the sandbox's namespaces");
	e->kind = r == -EPERM || r == -ENOSPC || r == -EINVAL || r == -EUSERS
			  ? ERR_UNSUPPORTED
			  : ERR_SYSTEM;
	return err_hint(e, "`stet doctor` says what forbids them and how to allow them");
}

static struct timespec coarse_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return t;
}

static int start(const struct run_spec *spec, struct relay *relay, int ctl[2],
		 int gate[2], int64_t began, int *pidfd, struct err *e)
{
	unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	struct init_args a = { .spec = spec,
			       .ctl = ctl[1],
			       .gate = gate[1],
			       .since = spec->since.tv_sec ? spec->since : coarse_now(),
			       .pty = relay_wants_pty(relay),
			       .relay = relay,
			       .uid = geteuid(),
			       .gid = getegid(),
			       .started_ns = began };
	pid_t pid;

	if (!spec->view->root)
		flags |= CLONE_NEWUSER;
	relay_child_fds(relay, a.stdio);
	sigprocmask(SIG_SETMASK, NULL, &a.mask);
	pid = ns_fork(flags, pidfd);
	if (pid < 0)
		return cannot_clone(pid, e);
	if (pid == 0)
		init_main(&a);
	close(TAKE_FD(ctl[1]));
	if (gate[1] >= 0)
		close(TAKE_FD(gate[1]));
	relay_forked(relay);
	return pid;
}

/* What is to be done before the command may start, beside the building of its sandbox. */
static int let_go(const struct run_spec *spec, struct relay *relay, struct err *e)
{
	int64_t id = 0;

	if (spec->ready && spec->ready(spec->ready_arg, &id, e) < 0)
		return -1;
	relay_go(relay, id);
	return 0;
}

static void judge(const struct relay_end *end, struct run_result *res)
{
	int ws = end->wait_status;

	res->reason = RUN_EXIT;
	if (end->gate.killed) {
		res->reason = RUN_POLICY;
		res->status = 128 + SIGKILL;
	} else if (end->timed_out) {
		res->reason = RUN_TIMEOUT;
		res->status = 124;
	} else if (end->exec_errno) {
		res->status = end->exec_errno == ENOENT ? 127 : 126;
	} else if (!end->exited) {
		res->reason = RUN_SIGNAL;
		res->signal = SIGKILL;
		res->status = 128 + SIGKILL;
	} else if (WIFSIGNALED(ws)) {
		res->reason = RUN_SIGNAL;
		res->signal = WTERMSIG(ws);
		res->status = 128 + res->signal;
	} else {
		res->status = WEXITSTATUS(ws);
	}
}

int runner_run(const struct run_spec *spec, struct run_result *res, struct err *e)
{
	AUTO_CLOSE int pidfd = -1;
	struct relay_end end = { 0 };
	struct relay *relay = NULL;
	int ctl[2] = { -1, -1 }, gate[2] = { -1, -1 };
	int64_t began = now_ns();
	pid_t pid = -1;
	int r;

	*res = (struct run_result){ 0 };
	if (relay_new(spec->want_tty, &relay, e) < 0)
		return -1;
	r = ctl_pair(ctl);
	if (r == 0 && spec->gate && spec->gate->judge)
		r = ctl_pair(gate);
	if (r < 0)
		r = err_sys(e, r, "cannot make a socket");
	else
		r = pid = start(spec, relay, ctl, gate, began, &pidfd, e);
	if (r >= 0)
		r = let_go(spec, relay, e);
	relay_gate(relay, gate[0], spec->gate);
	if (r >= 0)
		r = relay_loop(relay, ctl[0], pidfd, spec->timeout_ms, &end, e);
	relay_free(relay);
	log_debug("the command has ended");
	if (pid > 0) {
		if (r < 0)
			kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	cleanup_close(&ctl[0]);
	cleanup_close(&ctl[1]);
	cleanup_close(&gate[0]);
	cleanup_close(&gate[1]);
	if (r < 0)
		return -1;
	log_debug("nothing of it is left");
	if (end.failed) {
		*e = end.err;
		return -1;
	}
	judge(&end, res);
	res->setup_us = end.setup_us;
	res->run_us = (now_ns() - began) / 1000 - end.setup_us;
	res->dir_renames = end.renames;
	res->gate = end.gate;
	res->exec_errno = end.exec_errno;
	res->lost_errno = end.lost_errno;
	return 0;
}
