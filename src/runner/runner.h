/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_RUNNER_H
#define STET_RUNNER_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ctl/inside_socket.h"
#include "gate/gate.h"
#include "limits/limit.h"
#include "snap/view.h"

/*
 * Runs a command in a sandbox: builds the view in new namespaces, runs one command in it with
 * its own terminal (if ours is one) or pipes, and returns when no process of it is left, and
 * no mount but perhaps one that is being unmounted in the background (unmount.h).
 */

/* What happens if the working directory cannot be entered. */
enum run_cwd {
	CWD_NEEDED,	/* there is no run: runner_run() fails */
	CWD_OR_NOT_RUN, /* it is one that could not be executed */
	CWD_OR_ABOVE,	/* it runs in the nearest directory above that can be */
};

/* A descriptor that is polled while a command runs. */
struct run_side {
	int fd;			  /* -1: nothing; may be changed by @ready */
	void (*ready)(void *arg); /* in our own process: it can be read from */
	void *arg;
};

struct run_spec {
	/* Where the command runs: filled in, or to be filled in by @plan. */
	const struct view *view;
	const char *cwd;
	enum run_cwd cwd_rule;
	const char *control;   /* directory for the control socket (live.h); NULL: none */
	struct timespec since; /* beginning of the transaction; 0: now */
	/*
	 * Called in our own process while PID 1 makes the namespaces. The sandbox is built
	 * when it has returned 0. NULL: nothing to wait for.
	 */
	int (*plan)(void *arg, struct run_spec *spec, struct err *e);
	void *plan_arg;
	char *const *argv; /* looked up in the child's PATH, inside */
	char *const *envp; /* complete environment of the command */
	mode_t umask;
	struct run_limits limits;
	int64_t grace_ms; /* after the time limit, for the command to end by itself; 0: 2 s */
	bool no_input;	/* the command finds an empty standard input */
	const int *out; /* two descriptors for its output; NULL: 1 and 2 */
	int report;	/* descriptor that we write to afterwards; 0: none */
	bool offline;	/* no network but a loopback of its own */
	bool want_tty;	/* own pty if fds 0 and 1 are terminals */
	/*
	 * Called in our own process while the sandbox is being built; the command starts only
	 * when it has returned 0. *id then stands for the digits of STET_TXN in envp (which
	 * must leave room for 20 of them). NULL: nothing to wait for.
	 */
	int (*ready)(void *arg, int64_t *id, struct err *e);
	void *ready_arg;
	/* Judges every exec, and is told of it; NULL: execs are not looked at. */
	const struct gate_calls *gate;
	const struct inside_calls *door; /* who answers the inside; NULL: nobody */
	struct run_side *side;		 /* looked at until all has ended; NULL: none */
};

/* RUN_POLICY: a verdict `kill`; the transaction has to be rolled back. */
enum run_reason { RUN_EXIT, RUN_SIGNAL, RUN_TIMEOUT, RUN_LIMIT, RUN_ERROR, RUN_POLICY };
const char *run_reason_name(enum run_reason r);

struct run_result {
	enum run_reason reason;
	int status;	      /* as a shell sees it: exit code, 128+n, 124, 126, 127 */
	int signal;	      /* RUN_SIGNAL */
	struct limit_hit hit; /* RUN_LIMIT */
	int64_t cpu_us;	      /* of all its processes */
	uint64_t output;      /* bytes that passed through us */
	int64_t setup_us, run_us; /* building the sandbox; the command itself */
	uint64_t dir_renames;	  /* emulated */
	int exec_errno;		  /* why the command could not be executed; 0: it was */
	bool no_cwd;		  /* exec_errno is about its working directory */
	struct desk_end gate;	  /* RUN_POLICY */
	uint64_t
		untouched; /* idle_layers_untouched() at the end; 0 if PID 1 could not tell */
	bool mid_line;	   /* what was written last to run_spec.report is no whole line */
	int lost_errno; /* output that could not be written to our stdout or stderr */
	struct err
		trouble; /* RUN_ERROR: why the sandbox ended, and the command with it */
};

/*
 * Returns 0 whenever the command was started (or could not be executed: status 126/127),
 * whatever became of it or of its sandbox; -1 if the sandbox could not be built, in which case
 * nothing was executed. SIGTERM, SIGHUP, SIGINT and SIGQUIT sent to the caller are passed
 * on to the command. The terminal is as it was, in every case.
 */
int runner_run(const struct run_spec *spec, struct run_result *res, struct err *e);

#endif
