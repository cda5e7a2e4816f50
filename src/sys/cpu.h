/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_CPU_H
#define STET_SYS_CPU_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Two processes that work beside each other for a millisecond. The scheduler tends to keep
 * the one that was woken on the processor of the one that woke it, and then they take
 * turns. (With two processors and somebody else busy on the other, this costs about what
 * it gains otherwise.)
 */
struct cpu_apart {
	cpu_set_t was;
	bool done;
};

/*
 * Keeps @pid, which sleeps, off the processor that we are on. Only a hint: where there is
 * one processor, or we may not, nothing happens.
 */
void cpu_apart(struct cpu_apart *a, pid_t pid);

/* That process, and whatever it has forked since, may be everywhere again: for itself. */
void cpu_anywhere(const struct cpu_apart *a);

#endif
