/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_OPERAND_H
#define STET_GATE_OPERAND_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Resolves the paths on a command line, for one verdict: symbolic links and ".." are followed
 * as the kernel would for that process, below its root and from its directory, by
 * sys/callpath.h. A link that is changed between this and its use is not noticed here: the
 * diff rules judge what is then changed. Number and time are bounded; beyond that nothing is
 * resolved, and @exhausted says so.
 */
enum { OPERANDS_MAX = 16384, OPERANDS_MS = 1000 };

struct operands {
	pid_t pid;
	unsigned looks;
	int64_t until; /* CLOCK_MONOTONIC_COARSE in ms; 0: nothing was looked for yet */
	bool exhausted;
	char out[2 * PATH_MAX];
	/* The directory of the last path: many operands lie in the same one. */
	char dir[PATH_MAX], at[PATH_MAX];
	int fd; /* -1: none was */
};

void operands_begin(struct operands *o, pid_t pid);
void operands_end(struct operands *o);

/*
 * Where @path leads. Its last component, if it is a link, is followed if @last. Components
 * that do not exist yet are appended to the ones that do. NULL: it cannot be told. Valid until
 * the next call.
 */
const char *operand_path(struct operands *o, const char *path, bool last);

#endif
