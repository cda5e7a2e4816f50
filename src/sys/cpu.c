/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cpu.h"

void cpu_apart(struct cpu_apart *a, pid_t pid)
{
	int here = sched_getcpu();
	cpu_set_t others;

	if (here < 0 || here >= CPU_SETSIZE ||
	    sched_getaffinity(pid, sizeof(a->was), &a->was) < 0)
		return;
	others = a->was;
	CPU_CLR((size_t)here, &others);
	a->done = CPU_COUNT(&others) > 0 &&
		  sched_setaffinity(pid, sizeof(others), &others) == 0;
}

void cpu_anywhere(const struct cpu_apart *a)
{
	if (a->done)
		sched_setaffinity(0, sizeof(a->was), &a->was);
}
