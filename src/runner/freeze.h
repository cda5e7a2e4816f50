/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_FREEZE_H
#define STET_RUNNER_FREEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Stops every process of the sandbox for a moment; called by its PID 1. Parents are stopped
 * before their children and go on after them, so that no shell ever sees a child stopped. What
 * was stopped before stays so afterwards.
 */
struct freeze {
	pid_t *v; /* those that we have stopped, in that order */
	size_t n, cap;
};

/* 0, or -ETIMEDOUT if one would not stop: then all go on again. @child is our own command:
 * its having stopped is nobody's business. */
int freeze_all(struct freeze *f, pid_t child);
void freeze_thaw(struct freeze *f);

/* SIGKILL to all but @child; they are gone when this returns. */
void freeze_kill_others(pid_t child);

/*
 * A number that stays the same as long as no process of the sandbox, but its PID 1, is given
 * a processor; 0 if that cannot be told. Two of them prove something only if they were taken
 * more than STILL_MS apart: who has one already is counted in ticks.
 */
enum { STILL_MS = 25 };
uint64_t freeze_still(void);

/*
 * Files that a stopped process could have changed through a shared mapping, which leaves no
 * trace: their paths, each ended by a NUL byte, in a file that is to be closed. fd or -errno.
 */
int freeze_mapped(void);

#endif
