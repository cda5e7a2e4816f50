/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_INIT_H
#define STET_RUNNER_INIT_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "runner/relay.h"
#include "runner/runner.h"
#include "sys/cpu.h"

/*
 * PID 1 of the sandbox: builds the view, starts the command in a second, nested pair of user
 * and mount namespaces, supervises. It runs our code only, keeps its capabilities over the
 * first pair, and processes in the second one cannot look into it.
 */
/*
 * Where the command is to run. In memory shared with the caller, which may fill it in while
 * PID 1 begins.
 */
struct site {
	const struct view *view;
	char cwd[PATH_MAX], control[PATH_MAX]; /* control: may be empty */
	struct timespec since;	/* what is changed after it is the transaction's */
	struct cpu_apart apart; /* PID 1 from our caller; from CTL_BEGIN on */
	uint64_t
		untouched; /* idle_layers_untouched() of PID 1, when nothing but itself was left */
};

struct init_args {
	const struct run_spec *spec;
	struct site *site;
	bool wait; /* for CTL_BEGIN, and for CTL_PLAN, with which the site is complete */
	bool root; /* as in struct view */
	int ctl;   /* control socket, inner end */
	int gate;  /* the gate's socket, inner end; -1: execs are not held */
	int door;  /* what the inside may knock at (ctl/inside_socket.h); -1: nothing */
	bool pty;  /* make a terminal and hand the master up */
	int stdio[3]; /* for the command; -1: the pty */
	bool watched; /* hand up the root directory, for whoever watches over the limits */
	const struct relay *relay;
	uid_t uid; /* ours: a new user namespace knows no ids until they are mapped */
	gid_t gid;
	sigset_t mask;	    /* the command's signal mask */
	int64_t started_ns; /* CLOCK_MONOTONIC, for CTL_STARTED */
};

_Noreturn void init_main(const struct init_args *a);

#endif
