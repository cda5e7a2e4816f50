/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_OPERAND_H
#define STET_GATE_OPERAND_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Where the paths on a command line lead, for one verdict: symbolic links and ".." are followed as
 * the kernel would for that process, below its root and from its directory, by sys/callpath.h.
 * Who changes a link between this and its use is not noticed here: what is then changed is judged
 * by the diff rules.
 *
 * Bounded in number and time. What is beyond is not found, and @exhausted says so.
 */
enum { OPERANDS_MAX = 16384, OPERANDS_MS = 1000 };

struct operands {
	pid_t pid;
	unsigned looks;
	int64_t until; /* CLOCK_MONOTONIC_COARSE in ms; 0: nothing was looked for yet */
	bool exhausted;
	char out[2 * PATH_MAX];
	/* The directory that was found last: many operands lie in the same one. */
	char dir[PATH_MAX], at[PATH_MAX];
	int fd; /* -1: none was */
};

void operands_begin(struct operands *o, pid_t pid);
void operands_end(struct operands *o);

/*
 * @path leads to this; its last component, too, is followed if it is a link and @last. What
 * does not exist yet is named below what does. NULL: it cannot be told. Valid until the next call.
 */
const char *operand_path(struct operands *o, const char *path, bool last);

#endif
