/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_TERM_H
#define STET_PRINT_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "call/ctx.h"

/* @choice: enum of --color (0 and 1 auto, 2 always, 3 never). */
bool term_wants_color(const struct op_ctx *ctx, int choice, int fd);

/* Columns of the terminal on @fd; 0 if it is none. */
int term_width(int fd);

/* Can we ask a person? Standard input and error are terminals. */
bool term_can_ask(void);

/*
 * Which of @words (NULL-ended, first letters all different) was typed: the word, or as much of it
 * as no other begins with; blanks and capitals do not matter. -1: none. What merely begins with
 * the letter of one is none: who types `cancel` does not want a commit.
 */
int term_choice(const char *line, const char *const *words);

/*
 * Asks until a line is one of @words, and says what may be typed where it is none: its number,
 * or -1 for the end of input or Ctrl-C.
 */
int term_ask(const char *question, const char *const *words);

/*
 * The same while a command runs, whatever it has made of the terminal and whatever signals are
 * blocked. -1 also when @until (CLOCK_MONOTONIC in ms; 0: never) has come.
 */
int term_ask_between(const char *question, const char *const *words, int64_t until);

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
