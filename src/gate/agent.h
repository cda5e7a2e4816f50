/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_AGENT_H
#define STET_GATE_AGENT_H

#include "gate/image.h"

/*
 * Who the agent is. A call of its is what it starts, so it matters which of the processes that is:
 * mostly the command itself, but often enough that is a launcher (npx, uvx, timeout), a shell
 * script around the agent, or an agent that starts itself once more with other options.
 *
 * Guessing wrong costs a checkpoint too many or too few, and nothing else.
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

/* @pid, a child of @parent, has executed @i. The first one is an agent whatever it is. */
void agents_ran(struct agents *a, pid_t pid, pid_t parent, const struct image *i);

/* It has ended. */
void agents_drop(struct agents *a, pid_t pid);

#endif
