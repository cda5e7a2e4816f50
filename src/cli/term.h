/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_TERM_H
#define STET_CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "ops/ctx.h"

/* @choice: enum of --color (0 and 1 auto, 2 always, 3 never). */
bool term_wants_color(const struct op_ctx *ctx, int choice, int fd);

/* Columns of the terminal on @fd; 0 if it is none. */
int term_width(int fd);

/* Can we ask a person? Standard input and error are terminals. */
bool term_can_ask(void);

/* Asks and reads a line: its first letter, 0 if it is empty, -1 for end of file or Ctrl-C. */
int term_ask(const char *question);

/*
 * Asks and reads one key from standard input, whatever signals are blocked: -1 for Ctrl-C,
 * Ctrl-D, the end of input, or when @until (CLOCK_MONOTONIC in ms; 0: never) has come.
 */
int term_key(const char *question, int64_t until);

/*
 * A bar on standard error, drawn when something takes longer than a second, if that is a
 * terminal. From begin to end the context's progress is the bar's.
 */
struct progress {
	int64_t begun, drawn; /* milliseconds; drawn 0: not yet */
	int columns;
};
void progress_begin(struct op_ctx *ctx, struct progress *p);
void progress_end(struct op_ctx *ctx, struct progress *p);

/*
 * A pager between us and the terminal: STET_PAGER, GIT_PAGER, PAGER, or less. While it
 * runs, SIGPIPE and the keys that interrupt are its business, not ours.
 */
struct pager {
	pid_t pid; /* 0: none */
	FILE *out; /* what to print to */
};

/* Prints straight to standard output where that is no terminal or there is no pager. */
void pager_open(const struct op_ctx *ctx, struct pager *p);
/* Waits until the reader has left. */
void pager_close(struct pager *p);

#endif
