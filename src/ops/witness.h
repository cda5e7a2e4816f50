/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_WITNESS_H
#define STET_OPS_WITNESS_H

#include <sys/types.h>

#include "runner/runner.h"
#include "txn/txn.h"

/*
 * A process beside the run that notes what the host has where the command changes something
 * (txn/seen.h). It is started when the command has changed something and goes on for a while: most
 * do neither. Without one (no descriptors, no memory) a commit is stricter, that is all.
 */
struct witness {
	struct run_side side; /* for the run's loop */
	const struct txn *t;
	pid_t pid;    /* 0: there is none */
	int changes;  /* inotify */
	int stop;     /* closed: it ends */
	bool waiting; /* for the command to go on for a while */
};

/* @t, recorded, must stay where it is until witness_end(). */
void witness_begin(struct witness *w, const struct txn *t);

/* What it noted is kept; nothing of it is left. May be called at any time, more than once. */
void witness_end(struct witness *w);

#endif
