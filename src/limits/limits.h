/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LIMITS_LIMITS_H
#define STET_LIMITS_LIMITS_H

#include "limits/limit.h"

/* "cpu", "memory", …: also the names of the options. */
const char *run_limit_name(enum run_limit l);

/* In the command, after its user namespace was made, before it is executed. */
void limits_apply(const struct run_limits *l, bool root);

struct watch *watch_new(const struct run_limits *l, const struct cgroup *g,
			const struct watch_dirs *dirs);

/* Whom it kills when a limit is passed: PID 1 of the sandbox. The descriptor stays the caller's. */
void watch_victim(struct watch *w, int pidfd);

/* Must it be there from the first moment? As root nothing else stops a fork bomb. */
bool watch_urgent(const struct watch *w);

/*
 * The sandbox, of which @root is the root directory, is up, and nothing runs in it yet: what it
 * is to look at there is opened now. Once all processes are gone its mounts are, too, and what
 * they covered can be the host's. 0 or -errno.
 */
int watch_sandbox(struct watch *w, int root);

/* Starts it. 0 or -errno. */
int watch_start(struct watch *w);

/* To be polled for reading; -1 if it does not run. */
int watch_fd(const struct watch *w);

/* Something is there: true with *hit filled in; or, if it died, -errno in *error. */
bool watch_read(struct watch *w, struct limit_hit *hit, int *error);

/* Everything has ended: what was passed since the last look? */
bool watch_last(struct watch *w, struct limit_hit *hit);

void watch_free(struct watch *w); /* NULL is fine */

#endif
