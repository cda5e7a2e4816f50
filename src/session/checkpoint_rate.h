/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_CHECKPOINT_RATE_H
#define STET_SESSION_CHECKPOINT_RATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Which of an agent's calls have a checkpoint. An agent thinks between its calls; what follows
 * without a pause is a script or a build, of which the first few are as good as calls, and
 * then fewer and fewer. Times are milliseconds, and never zero.
 */
struct checkpoint_rate {
	int64_t any_at;	  /* when there was a call, */
	int64_t kept_at;  /* when one was last kept, */
	bool kept_text;	  /* and was it shell text? */
	int64_t burst_at; /* since when they have followed one another without a pause, */
	unsigned burst_n; /* and how many were kept */
};

/* A call at @now. @text: it tells a shell what to do, which says more than a program's name. */
bool checkpoint_rate_keeps(struct checkpoint_rate *p, int64_t now, bool text);

#endif
