/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/runner.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "ckpt/ckpt.h"
#include "ctl/ctl.h"
#include "ctl/live.h"
#include "limits/cgroup.h"
#include "limits/limits.h"
#include "runner/build.h"
#include "runner/init.h"
#include "runner/layers.h"
#include "runner/relay.h"
#include "runner/unmount.h"
#include "sys/cpu.h"
#include "sys/ns.h"

const char *run_reason_name(enum run_reason r)
{
	static const char *const names[] = {
		[RUN_EXIT] = "exit",   [RUN_SIGNAL] = "signal", [RUN_TIMEOUT] = "timeout",
		[RUN_LIMIT] = "limit", [RUN_ERROR] = "error",	[RUN_POLICY] = "policy"
	};

	return names[r];
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

/* The state of one runner_run(). */
struct run {
	struct run_spec spec;
	struct site *site; /* SITE_SIZE bytes, shared with PID 1 */
	struct relay *relay;
	struct cgroup cgroup;
	struct watch_dirs dirs;
	struct watch *watch;
	struct inside_socket door;
	int ctl[2], gate[2], pidfd;
	pid_t pid;
	int64_t began;
};

static pid_t fork_init(struct run *run, unsigned long flags)
{
	pid_t pid;

	if (run->cgroup.path) {
		pid = ns_fork_into(flags, &run->pidfd, run->cgroup.dir);
		if (pid >= 0)
			return pid;
		log_debug("not in a cgroup: %s", strerror(-pid));
		cgroup_remove(&run->cgroup);
	}
	return ns_fork(flags, &run->pidfd);
}

/*
 * Room for a view with more mounts than the kernel allows; pages that are not written to cost
 * nothing.
 */
enum { SITE_SIZE = 64 << 20 };

static int open_site(struct run *run, struct err *e)
{
	void *mem = mmap(NULL, SITE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		return err_sys(e, errno, "no memory for the plan of the sandbox");
	run->site = mem;
	return 0;
}

/* PID 1 may exist already: it sees only this shared memory. */
static int fill_site(struct run *run, struct err *e)
{
	const struct run_spec *s = &run->spec;
	const char *control = s->control ? s->control : "";
	struct site *site = run->site;

	if (strlen(s->cwd) >= sizeof(site->cwd) ||
	    strlen(control) >= sizeof(site->control))
		return err_sys(e, ENAMETOOLONG, "%s", s->cwd);
	memcpy(site->cwd, s->cwd, strlen(s->cwd) + 1);
	memcpy(site->control, control, strlen(control) + 1);
	site->since = s->since.tv_sec ? s->since : coarse_now();
	site->view = view_copy(s->view, site + 1, SITE_SIZE - sizeof(*site));
	return site->view ? 0 : err_set(e, ERR_SYSTEM, "there are too many mounts");
}

static int start(struct run *run, struct err *e)
{
	unsigned long flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	struct init_args a = { .spec = &run->spec,
			       .site = run->site,
			       .wait = run->spec.plan,
			       .root = geteuid() == 0,
			       .ctl = run->ctl[1],
			       .gate = run->gate[1],
			       .door = run->door.listen,
			       .pty = relay_wants_pty(run->relay),
			       .watched = run->watch,
			       .relay = run->relay,
			       .uid = geteuid(),
			       .gid = getegid(),
			       .started_ns = run->began };

	if (!a.root)
		flags |= CLONE_NEWUSER;
	if (run->spec.offline)
		flags |= CLONE_NEWNET;
	relay_child_fds(run->relay, a.stdio);
	sigprocmask(SIG_SETMASK, NULL, &a.mask);
	run->pid = fork_init(run, flags);
	if (run->pid < 0)
		return cannot_clone(run->pid, e);
	if (run->pid == 0)
		init_main(&a);
	/* PID 1 makes the namespaces and builds while we plan and write the journal. */
	if (run->spec.plan) {
		cpu_apart(&run->site->apart, run->pid);
		ctl_send_value(run->ctl[0], CTL_BEGIN, 0, 0);
	}
	watch_victim(run->watch, run->pidfd);
	close(TAKE_FD(run->ctl[1]));
	if (run->gate[1] >= 0)
		close(TAKE_FD(run->gate[1]));
	relay_forked(run->relay);
	return 0;
}

/* All directories of the transaction: layers, wherever they are seen, and checkpoints. */
static void list_dirs(const struct run_spec *s, struct watch_dirs *dirs)
{
	const struct view *v = s->view;

	dirs->v = xcalloc(2 * v->nlayers + 2, sizeof(*dirs->v));
	for (size_t i = 0; i < v->nlayers; i++)
		dirs->v[dirs->n++] = xasprintf("%s%s", v->layers[i].dir,
					       v->layers[i].kind == LAYER_OVERLAY ? "/up"
										  : "");
	for (size_t i = 0; i < v->nlayers; i++)
		if (v->layers[i].kind == LAYER_OVERLAY)
			dirs->v[dirs->n++] = xasprintf("%s/" CKPT_DIR, v->layers[i].dir);
	if (s->control)
		dirs->v[dirs->n++] = xasprintf("%s/" CKPT_DIR, s->control);
	dirs->ncopies = dirs->n - v->nlayers;
}

/* Calls @plan before the sandbox can be built, while PID 1 makes the namespaces. */
static int make_plan(struct run *run, struct err *e)
{
	struct run_spec *s = &run->spec;

	if (!s->plan)
		return 0;
	if (s->plan(s->plan_arg, s, e) < 0 || fill_site(run, e) < 0)
		return -1;
	list_dirs(s, &run->dirs);
	/* If PID 1 is gone already, its last message is waiting for us. */
	ctl_send_value(run->ctl[0], CTL_PLAN, 0, 0);
	return 0;
}

/* Calls @ready before the command may start, while PID 1 builds the sandbox. */
static int let_go(const struct run_spec *spec, struct relay *relay, struct err *e)
{
	int64_t id = 0;

	if (spec->ready && spec->ready(spec->ready_arg, &id, e) < 0)
		return -1;
	relay_go(relay, id);
	return 0;
}

static int open_run(struct run *run, struct err *e)
{
	const struct run_spec *spec = &run->spec;
	struct relay_wish w = { .want_tty = spec->want_tty,
				.no_input = spec->no_input,
				.out = spec->out,
				.output = spec->limits.output,
				.report = spec->report,
				.grace_ms = spec->grace_ms };
	int r;

	if (open_site(run, e) < 0)
		return -1;
	if (!spec->plan) {
		if (fill_site(run, e) < 0)
			return -1;
		list_dirs(spec, &run->dirs);
	}
	run->watch = w.watch = watch_new(&spec->limits, &run->cgroup, &run->dirs);
	if (relay_new(&w, &run->relay, e) < 0)
		return -1;
	cgroup_make(&spec->limits, &run->cgroup);
	r = ctl_pair(run->ctl);
	if (r == 0 && spec->gate && spec->gate->judge)
		r = ctl_pair(run->gate);
	if (r == 0)
		r = inside_socket_make(&run->door, spec->door);
	return r < 0 ? err_sys(e, r, "cannot make a socket") : 0;
}

/* Removes the control socket: PID 1 is gone. */
static void forget_control(const struct run_spec *spec)
{
	AUTO_FREE char *name = NULL;

	if (!spec->control)
		return;
	name = xasprintf("%s/" LIVE_NAME, spec->control);
	unlink(name);
}

static void close_run(struct run *run)
{
	inside_socket_close(&run->door);
	forget_control(&run->spec);
	watch_free(run->watch);
	if (run->site)
		munmap(run->site, SITE_SIZE);
	cgroup_remove(&run->cgroup);
	for (size_t i = 0; i < run->dirs.n; i++)
		free(run->dirs.v[i]);
	free(run->dirs.v);
	cleanup_close(&run->pidfd);
	cleanup_close(&run->ctl[0]);
	cleanup_close(&run->ctl[1]);
	cleanup_close(&run->gate[0]);
	cleanup_close(&run->gate[1]);
}

/* Finds a limit that was passed between the last look and the end. */
static void last_look(const struct run *run, struct relay_end *end,
		      const struct run_result *res)
{
	const struct run_limits *l = &run->spec.limits;
	bool killed = WIFSIGNALED(end->wait_status) &&
		      WTERMSIG(end->wait_status) == SIGXFSZ;

	if (end->hit.what || end->timed_out || end->gate.killed)
		return;
	if (run->watch && watch_last(run->watch, &end->hit))
		return;
	if (l->cpu_ms && res->cpu_us / 1000 > l->cpu_ms)
		end->hit = (struct limit_hit){ LIMIT_CPU, (uint64_t)res->cpu_us / 1000,
					       (uint64_t)l->cpu_ms };
	else if (l->output && end->output > l->output)
		end->hit = (struct limit_hit){ LIMIT_OUTPUT, end->output, l->output };
	else if (l->file && (killed || res->status == 128 + SIGXFSZ))
		end->hit = (struct limit_hit){ LIMIT_FILE, l->file, l->file };
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
	} else if (end->hit.what) {
		res->reason = RUN_LIMIT;
		res->hit = end->hit;
		res->status = 128 + SIGKILL;
	} else if (end->failed) {
		res->reason = RUN_ERROR;
		res->trouble = end->err;
		res->signal = SIGKILL;
		res->status = 128 + SIGKILL;
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

static int64_t cpu_us(const struct rusage *u)
{
	return ((int64_t)u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
	       u->ru_utime.tv_usec + u->ru_stime.tv_usec;
}

/* PID 1 was killed from outside, or by its cgroup, before it could say how the run ended. */
static void name_death(const struct run *run, struct relay_end *end)
{
	if (end->failed && end->started && !end->hit.what &&
	    cgroup_hit(&run->cgroup, &run->spec.limits, &end->hit))
		end->failed = false;
}

/* All processes are gone, and all mounts but the one that was kept for this. */
static void forget_files(const struct run *run, int mount)
{
	const struct step *s = run->spec.view ? build_main(run->spec.view) : NULL;

	if (mount < 0 || !s) {
		cleanup_close(&mount);
		return;
	}
	log_debug("what it looked up is forgotten later");
	unmount_later(mount, run->spec.view->layers[s->layer].dir);
}

int runner_run(const struct run_spec *spec, struct run_result *res, struct err *e)
{
	struct run run = { .spec = *spec,
			   .cgroup = { .dir = -1 },
			   .ctl = { -1, -1 },
			   .gate = { -1, -1 },
			   .door = { .listen = -1, .visitor = -1 },
			   .pidfd = -1,
			   .pid = -1,
			   .began = clock_ns(CLOCK_MONOTONIC) };
	struct relay_end end = { .mount = -1 };
	struct rusage usage = { 0 };
	int r;

	*res = (struct run_result){ 0 };
	r = open_run(&run, e);
	if (r >= 0)
		r = start(&run, e);
	if (r >= 0)
		r = make_plan(&run, e);
	if (r >= 0)
		r = let_go(&run.spec, run.relay, e);
	if (r >= 0) {
		relay_gate(run.relay, run.gate[0], spec->gate);
		relay_door(run.relay, &run.door);
		relay_side(run.relay, spec->side);
		r = relay_loop(run.relay, run.ctl[0], run.pidfd, spec->limits.wall_ms,
			       &end, e);
	}
	relay_free(run.relay);
	log_debug("the command has ended");
	if (run.pid > 0) {
		if (r < 0)
			kill(run.pid, SIGKILL);
		while (wait4(run.pid, NULL, 0, &usage) < 0 && errno == EINTR)
			;
	}
	forget_files(&run, end.mount);
	/*
	 * The command has run: whatever failed later, its changes exist and must not be lost.
	 */
	if (r < 0 && end.started) {
		end.failed = true;
		end.err = *e;
		r = 0;
	}
	if (r == 0) {
		log_debug("nothing of it is left");
		name_death(&run, &end);
		judge(&end, res);
		res->setup_us = end.setup_us;
		res->run_us = (clock_ns(CLOCK_MONOTONIC) - run.began) / 1000 -
			      end.setup_us;
		res->cpu_us = cpu_us(&usage);
		res->output = end.output;
		res->dir_renames = end.renames;
		res->gate = end.gate;
		res->exec_errno = end.exec_errno;
		res->no_cwd = end.no_cwd;
		res->mid_line = end.mid_line;
		res->lost_errno = end.lost_errno;
		res->untouched = run.site->untouched;
		last_look(&run, &end, res);
		judge(&end, res);
	}
	close_run(&run);
	if (r == 0 && end.failed && !end.started) {
		*e = end.err;
		return -1;
	}
	return r;
}
