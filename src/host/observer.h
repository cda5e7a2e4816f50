/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_OBSERVER_H
#define STET_HOST_OBSERVER_H

#include <sys/types.h>

#include "runner/runner.h"
#include "txn/txn.h"

/*
 * A process beside the run that notes what the host has where the command changes something
 * (host/base_running.h). It is started when the command has gone on for a while: most do
 * not. Without one (no descriptors, no memory) a commit is stricter, that is all.
 */
struct observer {
	struct run_side side; /* for the run's loop */
	const struct txn *t;
	pid_t pid; /* 0: there is none */
	int stop;  /* closed: it comes to its end */
	int done;  /* its end: what it noted is there */
};

/* @t, recorded, must stay where it is until observer_end(). */
void observer_begin(struct observer *w, const struct txn *t);

/*
 * Keeps the notes and ends the process. May be called at any time, more than once. The process
 * may be there a moment longer: the kernel takes its time to remove the watches.
 */
void observer_end(struct observer *w);

#endif
