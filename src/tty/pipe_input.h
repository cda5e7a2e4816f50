/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TTY_PIPE_INPUT_H
#define STET_TTY_PIPE_INPUT_H

#include "tty/pump.h"

/*
 * Private to the room: a pump whose input is the caller's pipe (or FIFO) and whose output is a pipe
 * of ours. What the command does not read stays in the caller's pipe, for whoever reads that next
 * (`while read f; do stet run -- make "$f"; done`): a page at a time is lent, that is copied
 * by tee(2), and taken out of the caller's pipe only when the command has read it. A command that
 * has read PIPE_INPUT_EXACT bytes is one that reads all; from then on the data is moved in
 * larger pieces, and at most a pipe full of it is lost to others if the command stops in between.
 */
enum { PIPE_INPUT_EXACT = 256 * 1024 };

/* @p has its in and out; 0 or -errno. */
int pipe_input_init(struct pump *p);

/* pump_poll() and pump_run() for a lent pipe. */
void pipe_input_poll(const struct pump *p, struct pollfd pf[2]);
void pipe_input_run(struct pump *p, const struct pollfd pf[2]);

/* Takes out of the caller's pipe what the command has read; before it is ended. */
void pipe_input_settle(struct pump *p);

#endif
