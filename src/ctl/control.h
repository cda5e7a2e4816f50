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
 * PID 1's side of the control socket, which lies in the transaction's directory: only the
 * transaction's own user gets there, and nothing from the inside. One client at a time. If
 * it goes away, or takes too long, whatever it has stopped goes on.
 */
struct control {
	int listen, client;	       /* -1: none */
	pid_t child;		       /* the command */
	const struct helpers *helpers; /* not to be stopped */
	const struct idle_layers *far;
	bool frozen;
	struct freeze freeze;
	int64_t thaw_at;    /* ms, monotonic; 0: not due */
	pid_t helper;	    /* carries out steps; 0: none */
	struct err *report; /* shared with it */
	int names, steps;   /* what it needs; -1: not come yet */
	int mark;	    /* where it says how far it is; -1: nowhere */
	int *fds;	    /* two for each layer: host, objects */
	size_t nfds;
	/* When nobody ran: what freeze_still() said, at what time (ms), about which state. */
	uint64_t seen, still, state;
	int64_t seen_at, still_at;
};

enum { CONTROL_POLLS = 2 };

/* The socket @dir/ctl, while the host's tree is still there to be seen. 0 or -errno. */
int control_open(struct control *c, const char *dir);

void control_poll(const struct control *c, struct pollfd p[CONTROL_POLLS]);
int control_wait_ms(const struct control *c); /* -1: for ever */
void control_serve(struct control *c, const struct pollfd p[CONTROL_POLLS]);

/* A child of PID 1's has ended: true if it was one of ours. */
bool control_reaped(struct control *c, pid_t pid, int status);

#endif
