/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_FREEZE_H
#define STET_CTL_FREEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Stops every process of the sandbox for a moment; called by its PID 1. Parents are stopped
 * before their children and go on after them, so that no shell ever sees a child stopped. A
 * process that was stopped before stays so.
 */
struct freeze {
	pid_t *v; /* those that we have stopped, in that order */
	size_t n, cap;
};

/* Children of PID 1 that carry out a call for the inside: they are not stopped half way. */
struct helpers {
	struct helper {
		pid_t pid;
		uint64_t call; /* the one that it answers */
	} * v;
	size_t n, cap;
};
void helpers_add(struct helpers *h, pid_t pid, uint64_t call);
uint64_t helpers_remove(struct helpers *h,
			pid_t pid); /* which call; 0: it was none of them */
bool helpers_has(const struct helpers *h, pid_t pid);

/*
 * 0, or -ETIMEDOUT if a process did not stop, or a helper did not end: then all processes go
 * on again.
 */
int freeze_all(struct freeze *f, const struct helpers *helpers);
/* Did freeze_all() stop @pid? Then the caller of stet must not be told of the stop. */
bool freeze_has(const struct freeze *f, pid_t pid);
void freeze_thaw(struct freeze *f);

/* Kills all processes but @child and the helpers; they are gone when this returns. */
void freeze_kill_others(pid_t child, const struct helpers *helpers);

/*
 * A number that stays the same as long as no process of the sandbox, but its PID 1, is given a
 * processor; 0 if that cannot be told. Two equal numbers prove that only if they were taken
 * more than STILL_MS apart, since a running process is counted at ticks.
 */
enum { STILL_MS = 25 };
uint64_t freeze_still(void);

/*
 * Lists the files that the stopped processes are writing to: mapped ones, which can be changed
 * without new times, and those that are open for writing. Each path has one of these letters
 * before it and a NUL byte behind it. The list is a file that the caller closes. fd or -errno.
 */
enum { FREEZE_MAPPED = 'm', FREEZE_OPEN = 'o' };
int freeze_written(void);

#endif
