/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_WITNESS_H
#define STET_OPS_WITNESS_H

#include <sys/types.h>

#include "runner/runner.h"
#include "txn/txn.h"

/*
 * A process beside the run that notes what the host has where the command changes something
 * (txn/seen.h). It is started when the command has gone on for a while: most do not. Without one
 * (no descriptors, no memory) a commit is stricter, that is all.
 */
struct witness {
	struct run_side side; /* for the run's loop */
	const struct txn *t;
	pid_t pid; /* 0: there is none */
	int stop;  /* closed: it comes to its end */
	int done;  /* its end: what it noted is there */
};

/* @t, recorded, must stay where it is until witness_end(). */
void witness_begin(struct witness *w, const struct txn *t);

/*
 * What it noted is kept. May be called at any time, more than once. The process itself may be there
 * a moment longer: the kernel takes its time to let go of what it has watched.
 */
void witness_end(struct witness *w);

#endif
