/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "gate/agent.h"
#include "gate/caller_side.h"
#include "gate/exits.h"
#include "gate/image.h"
#include "gate/image_cache.h"
#include "gate/operand.h"
#include "gate/stderr_line.h"
#include "gate/wire.h"

/* How long an exec may take before we look whether it has failed. */
enum { LOOK_MS = 20, LOOK_MAX_MS = 2000 };

/*
 * Records that no process waits for are sent when this many bytes have gathered, or after this
 * time: to wake the caller's side for every exec would cost as much as judging does.
 */
enum { GATHER_MAX = 65536, GATHER_MS = 50 };

enum state {
	HELD_ASKED, /* in the system call; somebody has to decide */
	HELD_TURN,  /* in it, decided; another thread of its process comes first */
	GOING,	    /* let go on, traced; the next stop decides */
	CERTAIN,    /* let go on as it is; gate_begun() tells how it went */
	STOPPED,    /* committed, stopped before its first instruction, asked again */
	LEAVING,    /* whatever stops or ends next is let go */
};

/* An exec that is not settled yet. We trace its task if @traced. */
struct pending {
	struct pending *next;
	pid_t tid, pid; /* who asked; who it is after the commit */
	pid_t parent;
	int held; /* its pidfd, or -1 */
	struct seccomp_notif req;
	uint64_t seq;
	enum state state;
	bool traced, unverified;
	bool first; /* the command's own exec: ours */
	bool call;  /* started by the agent itself */
	int64_t look_at;
	int look_ms;
	struct image image;
	struct verdict verdict;
};

struct gate {
	struct gate_setup s;
	struct image_place place;
	struct pending *all;
	uint64_t seq;
	struct buf unsent; /* messages, a length before each */
	int64_t send_at; /* when they are to go; 0: there are none, or no room for them */
	bool blocked;
	bool killed;
	pid_t command; /* who asked first: nothing else can have been there */
	struct exits exits;
	struct agents agents;
};

struct gate *gate_new(const struct gate_setup *s)
{
	struct gate *g = xcalloc(1, sizeof(*g));

	g->s = *s;
	g->place = (struct image_place){ s->since, s->root, -1, image_cache_new() };
	g->exits.epoll = -1;
	if (s->calls->ended)
		exits_open(&g->exits);
	return g;
}

static struct pending *find(const struct gate *g, pid_t tid)
{
	struct pending *p = g->all;

	while (p && p->tid != tid)
		p = p->next;
	return p;
}

static void forget(struct pending *p)
{
	cleanup_close(&p->held);
	p->held = -1;
	image_free(&p->image);
}

static void drop(struct gate *g, struct pending *p)
{
	struct pending **at = &g->all;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	forget(p);
	free(p);
}

/* --- to the desk --- */

static void post(struct gate *g, const void *data, size_t len, bool now)
{
	wire_add(&g->unsent, data, len);
	if (now || g->unsent.len >= GATHER_MAX)
		gate_flush(g);
	else if (!g->send_at && !g->blocked)
		g->send_at = clock_ms(CLOCK_MONOTONIC_COARSE) + GATHER_MS;
}

static void send_up(struct gate *g, enum wire_kind kind, struct pending *p,
		    enum exec_outcome outcome)
{
	struct wire_head h = { .kind = kind,
			       .outcome = outcome,
			       .pid = p->pid,
			       .ppid = p->parent,
			       .flags = p->call ? EXE_CALL : 0 };
	AUTO_BUF struct buf b = BUF_INIT;

	/* A task whose exec has failed has gone on since, perhaps in another directory. */
	if (outcome != EXEC_FAILED)
		image_cwd(&p->image, p->pid);
	h.seq = p->seq = ++g->seq;
	wire_pack(&b, &h, &p->image, &p->verdict);
	post(g, b.data, b.len, kind != WIRE_TELL || p->verdict.kind == VERDICT_KILL);
}

/*
 * While records gather, the end of a process alone wakes nobody: it is found before the
 * records are sent.
 */
int gate_holds(const struct gate *g)
{
	return g->exits.epoll;
}

int gate_exits_fd(const struct gate *g)
{
	return gate_ready(g) && !g->send_at ? g->exits.epoll : -1;
}

void gate_exits(struct gate *g)
{
	struct exit_note v[EXITS_AT_ONCE];
	bool more = true;

	while (more && gate_ready(g)) {
		unsigned n = exits_take(&g->exits, v, &more);

		for (unsigned i = 0; i < n; i++) {
			struct wire_head h = { .kind = WIRE_EXIT,
					       .pid = v[i].pid,
					       .seq = (uint32_t)v[i].status };

			agents_drop(&g->agents, h.pid);
			post(g, &h, sizeof(h), false);
		}
	}
}

bool gate_ready(const struct gate *g)
{
	return !g->blocked;
}

bool gate_idle(const struct gate *g)
{
	return !g->unsent.len;
}

void gate_flush(struct gate *g)
{
	size_t at = 0, len;

	while (at < g->unsent.len) {
		len = wire_fill(g->unsent.data + at, g->unsent.len - at);
		if (send(g->s.sock, g->unsent.data + at, len,
			 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
		at += len;
	}
	g->send_at = 0;
	g->blocked = at < g->unsent.len;
	if (!g->blocked) {
		buf_reset(&g->unsent);
		return;
	}
	memmove(g->unsent.data, g->unsent.data + at, g->unsent.len - at);
	buf_truncate(&g->unsent, g->unsent.len - at);
}

bool gate_killed(const struct gate *g)
{
	return g->killed;
}

static void tell(struct gate *g, struct pending *p, enum exec_outcome outcome)
{
	/* Pids are reused: the end of a former process with this pid is reported before. */
	if (exits_has(&g->exits, p->pid))
		gate_exits(g);
	if (g->s.calls->observe || p->verdict.kind == VERDICT_KILL)
		send_up(g, WIRE_TELL, p, outcome);
	log_debug("exec of %s by %d: %s", p->image.exe ? p->image.exe : "?", (int)p->pid,
		  exec_outcome_name(outcome));
}

/* --- verdicts --- */

/* What the judge can ask about an exec. */
struct asked {
	struct pending *p;
	struct operands operands;
};

static const char *find_cwd(void *ctx)
{
	struct pending *p = ((struct asked *)ctx)->p;

	return image_cwd(&p->image, p->pid);
}

static const char *find_path(void *ctx, const char *path, bool last)
{
	struct asked *a = ctx;

	return operand_path(&a->operands, path, last);
}

static void judge(const struct gate *g, struct pending *p)
{
	AUTO_FREE const char **argv = NULL;
	struct asked a;
	struct verdict *v = &p->verdict;
	struct exec_facts f;

	a.p = p;
	operands_begin(&a.operands, p->pid);
	image_facts(&p->image, &f, &argv);
	f.flags |= p->call ? EXE_CALL : 0;
	f.workspace = g->s.workspace;
	f.home = g->s.home;
	if (!p->image.placed)
		f.find_cwd = find_cwd;
	f.find_path = find_path;
	f.ctx = &a;
	*v = (struct verdict){ .kind = VERDICT_ALLOW };
	if (g->s.calls->judge(g->s.calls->ctx, &f, v) != 0)
		v->kind = VERDICT_DENY;
	operands_end(&a.operands);
	if (a.operands.exhausted && v->kind < VERDICT_DENY)
		*v = (struct verdict){
			.kind = VERDICT_DENY,
			.rule = "exec.operands",
			.why = "it names more paths than can be looked at",
			.hint = "xargs -n 1000",
		};
}

/*
 * Judges with what is known now. A checkpoint that was due stays due, and is not taken twice.
 */
static void judge_again(const struct gate *g, struct pending *p)
{
	const bool due = p->verdict.kind == VERDICT_CHECKPOINT;

	judge(g, p);
	if (due && p->verdict.kind < VERDICT_CHECKPOINT)
		p->verdict.kind = VERDICT_CHECKPOINT;
}

static void explain(const struct gate *g, const struct pending *p)
{
	const struct verdict *v = &p->verdict;
	bool asked = v->kind == VERDICT_ASK;
	char line[1024];
	size_t n;

	n = (size_t)snprintf(
		line, sizeof(line), "stet: denied by %s%s%s%s%s%s",
		v->rule ? v->rule : "policy", v->why ? ": " : "", v->why ? v->why : "",
		v->hint ? "; rather: " : "", v->hint ? v->hint : "",
		asked && !g->s.calls->ask
			? " (it needs a person's consent: see stet help consent)"
			: "");
	if (n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n] = '\n';
	line[n + 1] = '\0';
	stderr_line(p->pid, line);
}

static void deny(struct gate *g, struct pending *p)
{
	if (p->verdict.kind == VERDICT_KILL)
		g->killed = true; /* and it stays held until it dies with the rest */
	else
		explain(g, p);
	tell(g, p, EXEC_DENIED);
	if (!g->killed)
		unotify_answer(g->s.listener, p->req.id, -EPERM, false);
	/* The task may still be traced because of a former exec that failed. */
	if (p->traced && ptrace(PTRACE_INTERRUPT, p->tid, 0, 0) == 0)
		p->state = LEAVING;
	else
		drop(g, p);
}

/* The new image is loaded, but must not run. */
static void put_down(struct gate *g, struct pending *p)
{
	explain(g, p);
	/* After a verdict `kill` the task stays stopped until all processes die. */
	if (p->verdict.kind == VERDICT_KILL)
		g->killed = true;
	else
		kill(p->pid, SIGKILL);
	tell(g, p, EXEC_KILLED);
	p->state = LEAVING;
}

/* The exec is settled: the image runs, and no process waits for the record. */
static void runs(struct gate *g, struct pending *p, enum exec_outcome outcome)
{
	tell(g, p, outcome);
	if (exits_full(&g->exits))
		gate_exits(g);
	exits_watch(&g->exits, p->pid, TAKE_FD(p->held));
	agents_ran(&g->agents, p->pid, p->parent, &p->image);
	drop(g, p);
}

static void let_run(struct gate *g, struct pending *p)
{
	if (p->held < 0)
		p->held = exits_hold(p->pid, NULL);
	ptrace(PTRACE_DETACH, p->pid, 0, 0);
	runs(g, p, EXEC_RAN);
}

/* --- before the commit --- */

static void go_plain(struct gate *g, struct pending *p)
{
	image_cwd(&p->image, p->pid);
	unotify_answer(g->s.listener, p->req.id, 0, true);
	runs(g, p, EXEC_UNVERIFIED);
}

/* A debugger inside traces the task: there will be no second look. */
static void go_unverified(struct gate *g, struct pending *p)
{
	const struct gate_calls *c = g->s.calls;
	bool consent = p->verdict.kind == VERDICT_ASK;

	p->unverified = true;
	p->traced = false;
	if (p->image.recalled) {
		int r = image_again(&g->place, &p->req, &p->image);

		if (r < 0) {
			unotify_answer(g->s.listener, p->req.id, r, false);
			drop(g, p);
			return;
		}
	}
	p->image.flags |= EXE_TRACED;
	judge_again(g, p);
	if (p->verdict.kind == VERDICT_ASK && consent)
		p->verdict.kind = VERDICT_ALLOW;
	if (p->verdict.kind >= VERDICT_DENY ||
	    (p->verdict.kind == VERDICT_ASK && !c->ask))
		deny(g, p);
	else if (p->verdict.kind == VERDICT_ASK)
		send_up(g, WIRE_ASK, p, EXEC_UNVERIFIED);
	else if (p->verdict.kind == VERDICT_CHECKPOINT && c->before_call)
		send_up(g, WIRE_BEFORE, p, EXEC_UNVERIFIED);
	else
		go_plain(g, p);
}

/*
 * After this the task cannot commit an exec unseen. An earlier successful trace is no proof
 * that we still trace the task: its process may have become another thread's.
 */
enum hold { HOLD_OURS, HOLD_ANOTHERS, HOLD_NOBODYS };
static enum hold seize(const struct pending *p)
{
	pid_t tracer;

	if (ptrace(PTRACE_SEIZE, p->tid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) == 0)
		return HOLD_OURS;
	tracer = image_tracer(p->tid);
	return tracer == getpid() ? HOLD_OURS : tracer ? HOLD_ANOTHERS : HOLD_NOBODYS;
}

/*
 * Is it the command of the run, requested by our own code? No process inside has run yet that
 * could change its arguments. If the file is a program for this machine, and no script, the
 * kernel will execute just what was judged.
 */
static bool is_certain(const struct pending *p)
{
	return p->first && p->verdict.kind == VERDICT_ALLOW && p->image.exe &&
	       image_is_program(&p->image);
}

static bool same_process(pid_t a, pid_t b)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task/%d", (int)a, (int)b);
	return access(name, F_OK) == 0;
}

/*
 * An exec under way holds a lock that PTRACE_SEIZE of other threads of its process waits for,
 * and itself waits until all those threads are gone. A thread that we trace is gone only when
 * we have waited for it. So no thread is seized while another one of its process is traced.
 */
static bool has_turn(const struct gate *g, const struct pending *p)
{
	for (const struct pending *q = g->all; q; q = q->next)
		if (q != p && q->traced && same_process(p->tid, q->tid))
			return false;
	return true;
}

static void go_on(struct gate *g, struct pending *p)
{
	if (is_certain(p)) {
		image_cwd(&p->image, p->pid);
		p->state = CERTAIN;
		unotify_answer(g->s.listener, p->req.id, 0, true);
		return;
	}
	if (!has_turn(g, p)) {
		p->state = HELD_TURN;
		return;
	}
	if (FAULT_SKIP("gate.verify")) {
		go_plain(g, p);
		return;
	}
	switch (seize(p)) {
	case HOLD_OURS:
		break;
	case HOLD_ANOTHERS:
		go_unverified(g, p);
		return;
	case HOLD_NOBODYS:
		p->verdict = (struct verdict){
			.kind = VERDICT_DENY,
			.rule = "exec.unverifiable",
			.why = "the kernel does not let stet look at the program",
		};
		if (unotify_valid(g->s.listener, p->req.id))
			deny(g, p);
		else
			drop(g, p); /* it has died */
		return;
	}
	p->traced = true;
	p->state = GOING;
	p->look_ms = LOOK_MS;
	p->look_at = clock_ms(CLOCK_MONOTONIC_COARSE) + LOOK_MS;
	/*
	 * If the caller died meanwhile its pid may be another process's, which is let go
	 * again.
	 */
	if (unotify_answer(g->s.listener, p->req.id, 0, true) < 0) {
		ptrace(PTRACE_INTERRUPT, p->tid, 0, 0);
		p->state = LEAVING;
	}
}

static struct pending *take_up(struct gate *g, const struct seccomp_notif *req)
{
	struct pending *p;

	p = find(g, (pid_t)req->pid);
	if (p) {
		/*
		 * A former exec of the same task is over, or this one could not have been
		 * called.
		 */
		if (p->state == GOING || p->state == CERTAIN)
			tell(g, p, EXEC_FAILED);
		forget(p);
	} else {
		p = xcalloc(1, sizeof(*p));
		p->next = g->all;
		g->all = p;
	}
	p->tid = p->pid = (pid_t)req->pid;
	p->first = !g->command;
	if (p->first)
		g->command = p->pid;
	p->held = exits_hold(p->pid, &p->parent);
	if (!p->parent)
		p->parent = image_parent(p->pid);
	p->call = agents_has(&g->agents, p->parent) && !agents_has(&g->agents, p->pid);
	p->req = *req;
	p->verdict = (struct verdict){ .kind = VERDICT_ALLOW };
	p->unverified = false;
	p->state = HELD_ASKED;
	return p;
}

void gate_begun(struct gate *g, bool ran)
{
	struct pending *p = g->command ? find(g, g->command) : NULL;

	if (!p || p->state != CERTAIN)
		return;
	if (ran) {
		runs(g, p, EXEC_RAN);
		return;
	}
	tell(g, p, EXEC_FAILED);
	drop(g, p);
}

void gate_request(struct gate *g)
{
	struct pending *p = take_up(g, g->s.listener->req);
	int r;

	/* Only now: before, /proc may have been that of the host. */
	if (g->place.fds < 0)
		g->place.fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = image_asked(&g->place, &p->req, &p->image);
	/* A program that only the kernel can find is judged after the commit. */
	if (r == 0 && p->image.exe)
		judge(g, p);
	/* A guess is no reason to refuse or to ask. */
	if (p->image.recalled && p->verdict.kind >= VERDICT_ASK) {
		r = image_again(&g->place, &p->req, &p->image);
		if (r == 0 && p->image.exe)
			judge(g, p);
	}
	if (r < 0) {
		unotify_answer(g->s.listener, p->req.id, r, false);
		if (p->traced && ptrace(PTRACE_INTERRUPT, p->tid, 0, 0) == 0)
			p->state = LEAVING;
		else
			drop(g, p);
		return;
	}
	if (p->verdict.kind >= VERDICT_DENY ||
	    (p->verdict.kind == VERDICT_ASK && !g->s.calls->ask))
		deny(g, p);
	else if (p->verdict.kind == VERDICT_ASK)
		send_up(g, WIRE_ASK, p, EXEC_RAN);
	else
		go_on(g, p);
}

/* --- after it --- */

static void settle(struct gate *g, struct pending *p)
{
	const struct gate_calls *c = g->s.calls;

	if (p->verdict.kind >= VERDICT_DENY ||
	    (p->verdict.kind == VERDICT_ASK && !c->ask)) {
		put_down(g, p);
	} else if (p->verdict.kind == VERDICT_ASK ||
		   (p->verdict.kind == VERDICT_CHECKPOINT && c->before_call)) {
		p->state = STOPPED;
		send_up(g, p->verdict.kind == VERDICT_ASK ? WIRE_ASK : WIRE_BEFORE, p,
			EXEC_RAN);
	} else {
		let_run(g, p);
	}
}

/*
 * The start of the stack; *foreign: the image is for another ABI, whose calls our filter does
 * not know.
 */
static uint64_t stack_of(pid_t pid, bool *foreign)
{
#if defined(__x86_64__)
	const uint32_t native = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
	const uint32_t native = AUDIT_ARCH_AARCH64;
#else
	const uint32_t native = 0;
#endif
	struct __ptrace_syscall_info info = { .arch = native };

	ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
	*foreign = native && info.arch != native;
	return native && !*foreign ? info.stack_pointer : 0;
}

static void verify(struct gate *g, struct pending *p)
{
	struct image now;
	bool same, foreign;
	uint64_t sp = stack_of(p->pid, &foreign);

	if (image_committed(&g->place, p->pid, sp, &p->image, &now) < 0) {
		image_free(&now);
		p->verdict = (struct verdict){ .kind = VERDICT_DENY,
					       .rule = "exec.unverifiable",
					       .why = "the program cannot be looked at" };
		put_down(g, p);
		return;
	}
	if (foreign)
		now.flags |= EXE_FOREIGN;
	same = image_same(&p->image, &now);
	image_free(&p->image);
	p->image = now;
	if (!same)
		judge_again(g, p);
	else if (p->verdict.kind == VERDICT_ASK)
		p->verdict.kind = VERDICT_ALLOW; /* a person has said yes to just this */
	settle(g, p);
}

/* The task that has executed is a thread that now has the pid of its process. */
static struct pending *committed(struct gate *g, pid_t pid)
{
	unsigned long former = 0;
	struct pending *p = g->all, *leader;

	/* The task is the only one of its process that we trace. */
	if (p && !p->next && p->tid == pid)
		return p;
	if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &former) < 0)
		return NULL;
	p = find(g, (pid_t)former);
	leader = find(g, pid);
	/* The first thread of the process is gone, and no event will tell. */
	if (leader && leader != p)
		drop(g, leader);
	if (!p || p->tid == pid)
		return p;
	/* The pidfd is of the thread, whose number is gone. */
	cleanup_close(&p->held);
	p->held = -1;
	p->tid = p->pid = pid;
	return p;
}

bool gate_waited(struct gate *g, pid_t pid, int status)
{
	bool exec = WIFSTOPPED(status) &&
		    status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8));
	struct pending *p = exec ? committed(g, pid) : find(g, pid);

	if (!p || !p->traced) {
		/* No other task is traced by us; if one is, it must not stay stopped. */
		if (exec)
			ptrace(PTRACE_DETACH, pid, 0, 0);
		return exec;
	}
	if (!WIFSTOPPED(status)) {
		if (p->state == GOING)
			tell(g, p, EXEC_FAILED);
		drop(g, p);
		return false; /* its end may concern others too */
	}
	if (exec && p->state == GOING) {
		verify(g, p);
		return true;
	}
	if (p->state == LEAVING && exec)
		kill(pid, SIGKILL); /* committed without having been let go on */
	if (p->state == GOING)
		tell(g, p, EXEC_FAILED);
	/* A stop at a signal: the task gets the signal. */
	ptrace(PTRACE_DETACH, pid, 0,
	       (unsigned long)(status >> 16 ? 0 : WSTOPSIG(status)));
	drop(g, p);
	return true;
}

bool gate_answered(struct gate *g)
{
	struct wire_answer a;
	ssize_t n = recv(g->s.sock, &a, sizeof(a), MSG_DONTWAIT);
	struct pending *p = g->all;

	if (n != sizeof(a))
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	while (p && (p->seq != a.seq || (p->state != HELD_ASKED && p->state != STOPPED)))
		p = p->next;
	if (!p)
		return true;
	if (p->state == STOPPED) {
		if (a.yes)
			let_run(g, p);
		else
			put_down(g, p);
	} else if (!a.yes) {
		deny(g, p);
	} else if (p->unverified) {
		go_plain(g, p);
	} else {
		go_on(g, p);
	}
	return true;
}

/* --- execs that failed --- */

int gate_wait_ms(const struct gate *g)
{
	int64_t first = g->send_at, left;

	for (const struct pending *p = g->all; p; p = p->next)
		if (p->state == GOING && (!first || p->look_at < first))
			first = p->look_at;
	if (!first)
		return -1;
	left = first - clock_ms(CLOCK_MONOTONIC_COARSE);
	return left < 0 ? 0 : (int)left;
}

/* Does the task wait in the exec itself, for a slow disk? It must not be interrupted there. */
static bool in_exec(pid_t tid)
{
	char name[64], text[32] = "";
	FILE *f;
	long nr = -1;

	snprintf(name, sizeof(name), "/proc/%d/syscall", (int)tid);
	f = fopen(name, "re");
	if (!f)
		return false;
	if (fgets(text, sizeof(text), f))
		nr = strtol(text, NULL, 10);
	fclose(f);
	return nr == SYS_execve || nr == SYS_execveat;
}

void gate_tick(struct gate *g)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC_COARSE);

	if (g->send_at && g->send_at <= now) {
		gate_exits(g);
		gate_flush(g);
	}
	/* After records were sent at once no later look is due. */
	if (!g->send_at && exits_unseen(&g->exits))
		gate_exits(g);
	for (struct pending *p = g->all, *next; p; p = next) {
		next = p->next;
		if (p->state == HELD_TURN) {
			if (unotify_valid(g->s.listener, p->req.id))
				go_on(g, p);
			else
				drop(g, p); /* died when the other one's exec was done */
			continue;
		}
		if (p->state != GOING || p->look_at > now)
			continue;
		p->look_ms = p->look_ms < LOOK_MAX_MS ? p->look_ms * 2 : LOOK_MAX_MS;
		p->look_at = now + p->look_ms;
		if (!in_exec(p->tid))
			ptrace(PTRACE_INTERRUPT, p->tid, 0, 0);
	}
}
