/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_GATE_H
#define STET_GATE_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "policy/policy.h"
#include "sys/unotify.h"

/*
 * The exec question. Every execve and execveat inside is held by the seccomp listener,
 * judged by what its arguments say, let go on under our ptrace, and judged again by what
 * the kernel made of it, before the new image has executed anything. Only the second look
 * can be trusted: another thread may change the arguments between the first look and the
 * kernel's own. The first is there so that a refusal is an error of the call and not a
 * death.
 *
 * Two halves. The gate works in PID 1 of the sandbox and never waits. The desk works in
 * the process that started the run: there the callbacks are called that need the host.
 */

/* What became of an exec. */
enum exec_outcome {
	EXEC_RAN, /* verified on the committed image, or nobody could have changed it */
	EXEC_UNVERIFIED, /* let go on; a debugger inside had the task, we could not look */
	EXEC_FAILED,	 /* allowed, but the kernel could not execute it */
	EXEC_DENIED,	 /* EPERM */
	EXEC_KILLED,	 /* the committed image was another one, and is forbidden */
};

/* One exec, for the audit. All pointers are valid during the call only. */
struct exec_event {
	/* At most the first 64 KiB of the arguments; @argc is how many there were. */
	const struct exec_facts *facts;
	size_t argc;
	const struct verdict *verdict;
	enum exec_outcome outcome;
	pid_t pid, ppid; /* as the sandbox numbers them */
};

/* How a question may wait for its answer. */
struct ask_wait {
	int64_t until; /* CLOCK_MONOTONIC in ms; 0: no limit */
	/* To be called every now and then by an asker that leaves the terminal alone: output of
	 * other processes inside goes on. May be NULL. */
	void (*meanwhile)(void *arg);
	void *arg;
};

struct gate_calls {
	void *ctx;
	/*
	 * Runs in PID 1, a fork of the caller: everything it needs must be in memory when
	 * runner_run() is called, and its changes to memory are lost. Returns 0; anything else
	 * denies. NULL: execs are not held at all.
	 */
	int (*judge)(void *ctx, const struct exec_facts *f, struct verdict *v);
	/*
	 * The other functions run in the caller's process, between two polls: while they work
	 * the output of the command waits. NULL: nothing to do. before_call: for verdict
	 * `checkpoint`. The process is stopped before its first instruction. Returns 0;
	 * anything else kills it.
	 */
	int (*before_call)(void *ctx, const struct exec_facts *f,
			   const struct verdict *v);
	/* Verdict ask: true is yes. NULL: no. */
	bool (*ask)(void *ctx, const struct exec_facts *f, const struct verdict *v,
		    const struct ask_wait *w);
	/* All calls of observe and ended between the two belong together. */
	void (*gather)(void *ctx, bool begin);
	/* Called after each exec, in the order in which they were settled. */
	void (*observe)(void *ctx, const struct exec_event *ev);
	/*
	 * Called when a process that has executed something has ended; @status as waitpid(2)
	 * has it. Not for all processes: see exits.h, and those that are killed with the
	 * sandbox.
	 */
	void (*ended)(void *ctx, pid_t pid, int status);
};

/* --- PID 1's half --- */

struct gate;
struct gate_setup {
	const struct gate_calls *calls;
	const char *workspace, *home;
	struct timespec since; /* files changed after it are the transaction's own */
	bool root;	       /* the inside may be another user than we are */
	const struct unotify *listener;
	int sock; /* to the desk */
};

struct gate *gate_new(const struct gate_setup *s);
/* Takes up the exec that the listener has just received. */
void gate_request(struct gate *g);

/*
 * Tells whether the command of the run was executed. Call it before calls of the command
 * itself are taken up.
 */
void gate_begun(struct gate *g, bool ran);

/* Hands over @status from waitpid(2) of @pid: true if it was for the gate alone. */
bool gate_waited(struct gate *g, pid_t pid, int status);

/* Reads an answer of the caller's side. False: that is gone. */
bool gate_answered(struct gate *g);

/* Can more requests be received? If not: wait until the socket is writable, then flush. */
bool gate_ready(const struct gate *g);
void gate_flush(struct gate *g);

/* Has everything been sent? Records may wait to be sent together. */
bool gate_idle(const struct gate *g);

/* Milliseconds until gate_tick() is to be called; -1: never. */
int gate_wait_ms(const struct gate *g);
void gate_tick(struct gate *g);

/* A descriptor that is readable when a process has ended, for gate_exits(); -1: none now. */
int gate_exits_fd(const struct gate *g);
/* A descriptor that the gate has had from the beginning; -1: none. */
int gate_holds(const struct gate *g);
void gate_exits(struct gate *g);

/* Was there a verdict `kill`? Then the sandbox has to end now. */
bool gate_killed(const struct gate *g);

/* --- the other half --- */

struct desk_end {
	bool killed; /* by a verdict kill: */
	char rule[128], why[256];
};

struct desk {
	int sock; /* -1: there is none */
	const struct gate_calls *calls;
	struct ask_wait wait;
	/*
	 * Called around a question: the terminal is ours, and then the command's again. May be
	 * NULL.
	 */
	void (*hush)(void *arg, bool on);
	void *hush_arg;
	struct desk_end end;
	char *data; /* its own */
};

#endif
