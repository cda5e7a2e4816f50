/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_CONTROL_H
#define STET_CTL_CONTROL_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "ctl/freeze.h"
#include "ctl/idle.h"

/*
 * PID 1's side of the control socket. The socket lies in the directory of the transaction,
 * which only its user reaches, and no process inside. There is one client at a time. If it
 * goes away, or takes too long, all processes that it has stopped go on.
 */
struct control {
	int listen, client;	       /* -1: none */
	pid_t child;		       /* the command */
	const struct helpers *helpers; /* processes that are never stopped */
	const struct idle_layers *far;
	bool frozen;
	struct freeze freeze;
	int64_t thaw_at;    /* ms, monotonic; 0: not due */
	pid_t helper;	    /* the child that carries out steps; 0: none */
	struct err *report; /* memory shared with that child */
	int names, steps;   /* what the child reads; -1: not received yet */
	int mark;	    /* where the child says how far it is; -1: nowhere */
	int *fds;	    /* two for each layer: host, objects */
	size_t nfds;
	/*
	 * The last answer to CTL_STILL: what freeze_still() said, when (ms), and for which
	 * state.
	 */
	uint64_t seen, still, state;
	int64_t seen_at, still_at;
};

enum { CONTROL_POLLS = 2 };

/* Makes the socket @dir/ctl, while the tree of the host can still be seen. 0 or -errno. */
int control_open(struct control *c, const char *dir);

void control_poll(const struct control *c, struct pollfd p[CONTROL_POLLS]);
int control_wait_ms(const struct control *c); /* -1: for ever */
void control_serve(struct control *c, const struct pollfd p[CONTROL_POLLS]);

/* Tells that a child of PID 1 has ended: true if it was the helper of a client. */
bool control_reaped(struct control *c, pid_t pid, int status);

#endif
