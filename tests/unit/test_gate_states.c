/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of an exec in the gate. The test holds the execs of a child of its own, plays the
 * judge and the desk as a table says, and compares what the gate tells the desk.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "gate/gate.h"
#include "gate/wire.h"
#include "sys/unotify.h"

enum {
	ALLOW = VERDICT_ALLOW,
	CHECKPOINT = VERDICT_CHECKPOINT,
	ASK = VERDICT_ASK,
	DENY = VERDICT_DENY,
	KILL = VERDICT_KILL
};
/* What the child does. */
enum act {
	AS_COMMAND,   /* executes `prog` before anything else, as the run's own command */
	LATER,	      /* an exec that fails for certain first, then `prog` */
	TEXT,	      /* executes `text`, which is no program, and ends */
	TEXT_WAITS,   /* executes `text`, and goes on without an exec */
	TEXT_THEN,    /* executes `text`, and then `prog` */
	TEXT_THREADS, /* executes `text`; a second thread executes `prog` meanwhile */
	DEBUGGED,     /* traces a process of its own that executes `prog` */
};
enum { CAN_ASK = 1, CAN_CHECKPOINT = 2, SWAP = 4, YES = 8 };
enum { KILLED = 1000 }; /* by a signal, not an exit status */

/* clang-format off */
static const struct row {
	const char *name;
	enum act act;
	int first, second; /* verdicts: on the call's arguments; on the committed image */
	int flags;
	int looks;        /* how often the gate asks the judge */
	const char *told; /* to the desk */
	int ends;         /* the child's status: 0: `prog` ran, 1: `other` ran, 100 + errno */
} rows[] = {
	{ "allowed",               LATER, ALLOW, ALLOW, 0,                     1, "ran",            0 },
	{ "denied",                LATER, DENY,  DENY,  0,                     1, "denied",         100 + EPERM },
	{ "killed with the rest",  LATER, KILL,  KILL,  0,                     1, "denied",         KILLED },
	{ "nobody to ask",         LATER, ASK,   ASK,   0,                     1, "denied",         100 + EPERM },
	{ "asked: yes",            LATER, ASK,   ASK,   CAN_ASK | YES,         1, "ask ran",        0 },
	{ "asked: no",             LATER, ASK,   ASK,   CAN_ASK,               1, "ask denied",     100 + EPERM },
	{ "checkpoint",            LATER, CHECKPOINT, ALLOW, CAN_CHECKPOINT | YES, 1, "before ran", 0 },
	{ "checkpoint failed",     LATER, CHECKPOINT, ALLOW, CAN_CHECKPOINT,   1, "before killed",  KILLED },
	{ "no checkpoints here",   LATER, CHECKPOINT, ALLOW, 0,                1, "ran",            0 },

	/* The judge puts `other` in the place of `prog` before the kernel opens the file. */
	{ "changed: allowed",      LATER, ALLOW, ALLOW, SWAP,                  2, "ran",            1 },
	{ "changed: denied",       LATER, ALLOW, DENY,  SWAP,                  2, "killed",         KILLED },
	{ "changed: kill",         LATER, ALLOW, KILL,  SWAP,                  2, "killed",         KILLED },
	{ "changed: nobody to ask", LATER, ALLOW, ASK,  SWAP,                  2, "killed",         KILLED },
	{ "changed: asked: yes",   LATER, ALLOW, ASK,   SWAP | CAN_ASK | YES,  2, "ask ran",        1 },
	{ "changed: asked: no",    LATER, ALLOW, ASK,   SWAP | CAN_ASK,        2, "ask killed",     KILLED },
	{ "changed: a yes was for the other", LATER, ASK, DENY, SWAP | CAN_ASK | YES, 2, "ask killed", KILLED },
	{ "changed: asked twice",  LATER, ASK,   ASK,   SWAP | CAN_ASK | YES,  2, "ask ask ran",    1 },
	{ "changed: the checkpoint is still due", LATER, CHECKPOINT, ALLOW, SWAP | CAN_CHECKPOINT | YES, 2,
	                                                                          "before ran",     1 },
	{ "changed: a checkpoint now", LATER, ALLOW, CHECKPOINT, SWAP | CAN_CHECKPOINT | YES, 2,
	                                                                          "before ran",     1 },

	/* Nothing of the inside could have changed the arguments of the run's own command. */
	{ "the command",           AS_COMMAND, ALLOW, DENY, 0,                 1, "ran",            0 },
	{ "the command is denied", AS_COMMAND, DENY, DENY, 0,                  1, "denied",         100 + EPERM },
	{ "the command, checked",  AS_COMMAND, CHECKPOINT, DENY, CAN_CHECKPOINT | YES, 1, "before ran", 0 },

	/* The kernel cannot execute `text`. */
	{ "failed",                TEXT,         ALLOW, ALLOW, 0,              1, "failed",         100 + ENOEXEC },
	{ "failed, and goes on",   TEXT_WAITS,   ALLOW, ALLOW, 0,              1, "failed",         100 + ENOEXEC },
	{ "failed, then another",  TEXT_THEN,    ALLOW, ALLOW, 0,              2, "failed ran",     0 },
	{ "failed in one thread",  TEXT_THREADS, ALLOW, ALLOW, 0,              2, "failed ran",     0 },

	/* With a debugger inside there is no second look: the gate asks the judge once more. */
	{ "debugged",              DEBUGGED, ALLOW, ALLOW, 0,                  2, "unverified",     0 },
	{ "debugged: denied",      DEBUGGED, ALLOW, DENY,  0,                  2, "denied",         100 + EPERM },
	{ "debugged: asked: yes",  DEBUGGED, ALLOW, ASK,   CAN_ASK | YES,      2, "ask unverified", 0 },
	{ "debugged: asked: no",   DEBUGGED, ALLOW, ASK,   CAN_ASK,            2, "ask denied",     100 + EPERM },
	{ "debugged: checkpoint",  DEBUGGED, ALLOW, CHECKPOINT, CAN_CHECKPOINT | YES, 2,
	                                                                          "before unverified", 0 },
};
/* clang-format on */

static char dir[64]; /* holds the programs */

/* A gate lives as long as PID 1, so that nothing frees it: kept for the leak checker. */
static struct gate *gates[ARRAY_SIZE(rows)];

/* --- the child --- */

static int hold_execs(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execve, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

static int execute(const char *name)
{
	char path[80];
	char *const argv[] = { path, NULL }, *const envp[] = { NULL };

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	execve(path, argv, envp);
	return 100 + errno;
}

static void *execute_prog(void *arg)
{
	(void)arg;
	_exit(execute("prog"));
}

/* The debugger lets its process go on after every stop. */
static int debug(void)
{
	int go[2], status;
	char c = 0;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return 90;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		_exit(read(go[0], &c, 1) == 0 ? execute("prog") : 91);
	}
	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		return 92;
	close(go[1]);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, pid, 0, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 93;
}

/* @wait: closed by the test when the gate has told of the exec that failed. */
static int act(enum act what, int wait)
{
	pthread_t other;
	int r = 0;
	char c;

	if (what == AS_COMMAND)
		return execute("prog");
	execute("none");
	if (what == LATER)
		return execute("prog");
	if (what == DEBUGGED)
		return debug();
	r = execute("text");
	if (what == TEXT_THEN)
		return execute("prog");
	if (what == TEXT_THREADS && pthread_create(&other, NULL, execute_prog, NULL) != 0)
		return 94;
	if (what == TEXT_THREADS)
		pause(); /* the second thread's exec ends this thread */
	if (what == TEXT_WAITS && read(wait, &c, 1) != 0)
		return 95;
	return r;
}

struct scene {
	const struct row *r;
	pid_t child;
	struct unotify listener;
	struct gate *gate;
	int desk; /* the other end of the gate's socket */
	int wait; /* for act(); -1: closed */
	int looks;
	bool ended;
	int ends;
	struct buf told;
};

static void child(const struct scene *s, int sock, int wait)
{
	int quiet = open("/dev/null",
			 O_WRONLY | O_CLOEXEC); /* a refusal is explained there */
	int fd = dup2(quiet, STDERR_FILENO) < 0 ? -1 : hold_execs();
	char ready = 0;

	if (write(sock, &fd, sizeof(fd)) != sizeof(fd) || read(sock, &ready, 1) != 1)
		_exit(96);
	close(fd);
	close(sock);
	_exit(act(s->r->act, wait));
}

static void start(struct scene *s)
{
	int sock[2], wait[2], theirs = -1, pidfd, fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	assert_int_equal(pipe2(wait, O_CLOEXEC), 0);
	s->child = fork();
	if (s->child == 0) {
		close(sock[0]);
		close(wait[1]);
		child(s, sock[1], wait[0]);
	}
	close(sock[1]);
	close(wait[0]);
	s->wait = wait[1];
	assert_int_equal(read(sock[0], &theirs, sizeof(theirs)), sizeof(theirs));
	assert_true(theirs >= 0);
	pidfd = (int)syscall(SYS_pidfd_open, s->child, 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	assert_true(pidfd >= 0 && fd >= 0);
	assert_int_equal(unotify_open(&s->listener, fd), 0);
	assert_int_equal(write(sock[0], "", 1), 1);
	close(pidfd);
	close(sock[0]);
}

/* --- judge and desk --- */

static int judge(void *ctx, const struct exec_facts *f, struct verdict *v)
{
	struct scene *s = ctx;

	(void)f;
	v->kind = (enum verdict_kind)(s->looks++ ? s->r->second : s->r->first);
	v->rule = "row";
	if (s->looks == 1 && s->r->flags & SWAP) {
		char prog[80], other[80];

		snprintf(prog, sizeof(prog), "%s/prog", dir);
		snprintf(other, sizeof(other), "%s/other", dir);
		assert_int_equal(rename(other, prog), 0);
	}
	return 0;
}

/* Nobody calls the desk's callbacks: that they are there tells the gate what the desk can do. */
static int before_call(void *ctx, const struct exec_facts *f, const struct verdict *v)
{
	(void)ctx;
	(void)f;
	(void)v;
	return 0;
}

static bool ask(void *ctx, const struct exec_facts *f, const struct verdict *v,
		const struct ask_wait *w)
{
	(void)ctx;
	(void)f;
	(void)v;
	(void)w;
	return true;
}

static void observe(void *ctx, const struct exec_event *ev)
{
	(void)ctx;
	(void)ev;
}

static void hear(struct scene *s, const struct wire_exec *x)
{
	static const char *const outcomes[] = { [EXEC_RAN] = "ran",
						[EXEC_UNVERIFIED] = "unverified",
						[EXEC_FAILED] = "failed",
						[EXEC_DENIED] = "denied",
						[EXEC_KILLED] = "killed" };
	const struct wire_answer a = { .seq = x->head.seq,
				       .yes = (s->r->flags & YES) != 0 };

	buf_addf(&s->told, "%s%s", s->told.len ? " " : "",
		 x->head.kind == WIRE_ASK      ? "ask"
		 : x->head.kind == WIRE_BEFORE ? "before"
					       : outcomes[x->head.outcome]);
	if (x->head.kind != WIRE_TELL)
		assert_int_equal(send(s->desk, &a, sizeof(a), 0), sizeof(a));
	else if (x->head.outcome == EXEC_FAILED) {
		cleanup_close(&s->wait);
		s->wait = -1;
	}
}

static void hear_all(struct scene *s)
{
	static char packet[WIRE_MAX];
	const char *data, *message;
	ssize_t n, len;

	while ((n = recv(s->desk, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		size_t left = (size_t)n;

		for (data = packet; (len = wire_next(&data, &left, &message)) > 0;) {
			struct wire_exec x;

			assert_int_equal(wire_unpack(message, (size_t)len, &x), 0);
			hear(s, &x);
			free(x.argv);
		}
	}
}

/* --- the loop of PID 1 --- */

static void reap(struct scene *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		bool over = pid == s->child && !WIFSTOPPED(status);

		/* PID 1 hears of this exec from its child; the test knows at the child's end. */
		if (over && s->r->act == AS_COMMAND)
			gate_begun(s->gate, true);
		if (gate_waited(s->gate, pid, status) || !over)
			continue;
		s->ended = true;
		s->ends = WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
	}
}

static void serve(struct scene *s, int chld)
{
	enum { LISTENER, CHLD, DESK, GATE, ALL };
	struct pollfd p[ALL] = { { .fd = s->listener.fd, .events = POLLIN },
				 { .fd = chld, .events = POLLIN },
				 { .fd = s->desk, .events = POLLIN } };
	struct signalfd_siginfo info;
	int ms = gate_wait_ms(s->gate), n;

	n = poll(p, GATE, ms < 0 ? 20000 : ms);
	assert_true(n > 0 || ms >= 0);
	if (p[LISTENER].revents & POLLIN && unotify_recv(&s->listener) == 1)
		gate_request(s->gate);
	if (p[CHLD].revents && read(chld, &info, sizeof(info)) > 0)
		reap(s);
	if (p[DESK].revents)
		hear_all(s);
	assert_true(gate_answered(s->gate));
	gate_tick(s->gate);
	if (gate_killed(s->gate) && !s->ended)
		kill(s->child, SIGKILL);
}

static void make_programs(void)
{
	static const char *const ends[] = { "prog", "other" };
	char path[80], to[32];
	int fd;

	strcpy(dir, "/tmp/stet-gate-XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, ends[i]);
		snprintf(to, sizeof(to), "/usr/bin/%s", i ? "false" : "true");
		assert_int_equal(symlink(to, path), 0);
	}
	snprintf(path, sizeof(path), "%s/text", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, "no program\n", 11), 11);
	close(fd);
}

static void remove_programs(void)
{
	static const char *const names[] = { "prog", "other", "text" };
	char path[80];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void check_row(const struct row *r, int chld)
{
	struct scene s = { .r = r, .told = BUF_INIT };
	const struct gate_calls calls = { .ctx = &s,
					  .judge = judge,
					  .ask = r->flags & CAN_ASK ? ask : NULL,
					  .before_call = r->flags & CAN_CHECKPOINT
								 ? before_call
								 : NULL,
					  .observe = observe };
	struct gate_setup setup = { .calls = &calls,
				    .workspace = "/",
				    .home = "/",
				    .since = { INT64_MAX, 0 },
				    .root = geteuid() == 0,
				    .listener = &s.listener };
	int sock[2];

	make_programs();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	setup.sock = sock[0];
	s.desk = sock[1];
	start(&s);
	s.gate = gates[r - rows] = gate_new(&setup);
	while (!s.ended)
		serve(&s, chld);
	gate_flush(s.gate);
	hear_all(&s);
	if (strcmp(buf_str(&s.told), r->told) != 0 || s.looks != r->looks ||
	    s.ends != r->ends)
		fail_msg("%s: told \"%s\" after %d looks, ended with %d", r->name,
			 buf_str(&s.told), s.looks, s.ends);
	assert_int_equal(gate_killed(s.gate), r->first == KILL || r->second == KILL);
	/* No exec is left that the gate would look at later. */
	assert_int_equal(gate_wait_ms(s.gate), -1);
	close(s.listener.fd);
	free(s.listener.req);
	free(s.listener.resp);
	cleanup_close(&s.wait);
	buf_free(&s.told);
	close(sock[0]);
	close(sock[1]);
	remove_programs();
}

static void states(void **state)
{
	sigset_t set;
	int chld;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	chld = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	assert_true(chld >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_row(&rows[i], chld);
	close(chld);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(states) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
