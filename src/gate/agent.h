/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_AGENT_H
#define STET_GATE_AGENT_H

#include "gate/image.h"

/*
 * Finds out which process is the agent. A tool call is a process that the agent starts, so it
 * matters which process that is: mostly the command itself, but often the command is a
 * launcher (npx, uvx, timeout), a shell script around the agent, or an agent that starts
 * itself once more with other options. A wrong guess costs a checkpoint too many or too few,
 * and nothing else.
 */
enum { AGENTS_MAX = 16 };

struct agents {
	struct agent {
		pid_t pid;
		bool launcher;
		char *args; /* as in struct image */
		size_t args_len, argc;
	} v[AGENTS_MAX];
	size_t n;
};

void agents_free(struct agents *a);

bool agents_has(const struct agents *a, pid_t pid);

/*
 * Tells that @pid, a child of @parent, has executed @i. The first process counts as an agent
 * in any case.
 */
void agents_ran(struct agents *a, pid_t pid, pid_t parent, const struct image *i);

/* Tells that @pid has ended. */
void agents_drop(struct agents *a, pid_t pid);

#endif
