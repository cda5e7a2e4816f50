/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SHELL_CONTEXT_H
#define STET_SHELL_CONTEXT_H

#include "base/arena.h"
#include "shell/events.h"

/*
 * The state that the walk through shell text shares with its caller, for a text and all texts
 * inside of it. The caller makes the context a member of a struct of its own, in which the
 * functions of `events` find the rest of their data.
 */
struct context {
	const struct shell_events *events;
	struct arena *arena;
	const char *cwd;  /* NULL: not known; cwd_known() tells the path */
	const char *home; /* NULL: not known */
	unsigned nested;  /* how many texts, each inside of another, are being followed */
	size_t from, to;  /* the command that is being followed, in the outermost text */
	unsigned steps;	  /* left until the question is given up as too large */
	size_t made;	  /* bytes and words that expansions have made so far */
	bool too_large;	  /* that there are too many of these has been reported */
};

enum { DEPTH_MAX = 24, STEPS_MAX = 20000 };

static inline void report_command(struct context *ctx, struct cmd *c)
{
	ctx->events->command(ctx, c);
}

static inline void report_unknown(struct context *ctx)
{
	ctx->events->unknown(ctx);
}

static inline void report_write(struct context *ctx, const struct word *target)
{
	ctx->events->write(ctx, target);
}

static inline void report_variable(struct context *ctx, const char *name, size_t len,
				   const struct word *value)
{
	ctx->events->variable(ctx, name, len, value);
}

#endif
