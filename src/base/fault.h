/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_FAULT_H
#define STET_BASE_FAULT_H

#include <stdbool.h>

/*
 * Places where a test may let something fail or the process die. FAULT_POINT("name") is 0,
 * or the -errno to behave as if the next step had failed with:
 *
 *	r = FAULT_POINT("commit.exchange");
 *	if (r == 0)
 *		r = really_do_it();
 *
 * FAULT_AT("name") is the same as a condition, with errno set:
 *
 *	if (FAULT_AT("commit.mkdir") || mkdir(path, 0700) < 0)
 *		return -errno;
 *
 * In an ordinary build it is the constant 0. With STET_FAULTS defined (meson option
 * `faults`) the environment says what happens:
 *
 *	STET_FAULT=name:nth:EIO	 the nth time (from 1) that point is reached; an errno by
 *				 name or number
 *	STET_FAULT=name:nth:kill the process kills itself there; stop: it stops, and goes on
 *				 when somebody lets it
 *	STET_FAULT=#n:EIO	 the n-th point reached, whatever its name; or #n:kill
 *	STET_FAULT=#n+:EIO	 that one and every one after it; likewise name:nth+:EIO
 *	STET_FAULT=a,b		 several of these, up to eight
 *	STET_FAULT_ONCE=path	 only if that file is there, which is deleted first: whoever of
 *				 several processes comes to the point, one is struck
 *	STET_FAULT_LOG=5|path	 a line "n name" for every point reached, written to that
 *				 descriptor, or appended to that file
 *
 * Counting is per process, a child going on from its parent's count. A STET_FAULT that
 * cannot be read aborts: a test must not pass because nothing was injected.
 *
 * FAULT_SKIP("name") is true the nth time if STET_FAULT_SKIP=name:nth says so, and ever
 * after if it says name:nth+: the step is then left out and reported as done. So a test
 * can show that it would notice.
 *
 * FAULT_NEVER() spares a process beside the one that is tested, which would take its turn.
 */
#ifdef STET_FAULTS
#define FAULT_POINT(name) fault_point(name)
#define FAULT_AT(name) fault_at(name)
#define FAULT_SKIP(name) fault_skip(name)
#define FAULT_NEVER() fault_never()
#define FAULT_SPARE(on) fault_spare(on)
int fault_point(const char *name);
int fault_at(const char *name);
int fault_skip(const char *name);
void fault_never(void);
/* Nothing is reached or counted while it is on; returns what it was before. */
bool fault_spare(bool on);
#else
#define FAULT_POINT(name) ((void)sizeof(name), 0)
#define FAULT_AT(name) ((void)sizeof(name), 0)
#define FAULT_SKIP(name) ((void)sizeof(name), 0)
#define FAULT_NEVER() ((void)0)
#define FAULT_SPARE(on) (on)
#endif

#endif
