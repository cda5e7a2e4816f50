/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LIMITS_CGROUP_H
#define STET_LIMITS_CGROUP_H

#include "limits/limit.h"

/* Makes one for @l if that is possible and of use; else leaves g->path NULL. */
void cgroup_make(const struct run_limits *l, struct cgroup *g);

/* Which of its limits was passed: true with *hit filled in. */
bool cgroup_hit(const struct cgroup *g, const struct run_limits *l,
		struct limit_hit *hit);

/* CPU time of all that ran in it, in milliseconds; -1 if it cannot be read. */
int64_t cgroup_cpu_ms(const struct cgroup *g);

/* When nothing runs in it any more. */
void cgroup_remove(struct cgroup *g);

bool cgroup_place(struct buf *path, bool *memory, bool *pids);

#endif
