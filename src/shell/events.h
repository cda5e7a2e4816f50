/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SHELL_EVENTS_H
#define STET_SHELL_EVENTS_H

#include "shell/cmd.h"

struct context;

/* The functions of the caller that the walk through shell text calls. All must be set. */
struct shell_events {
	/* The text runs a program. The function may add names to @c. */
	void (*command)(struct context *ctx, struct cmd *c);
	/* The text does something here that cannot be known from it. */
	void (*unknown)(struct context *ctx);
	/* A redirection writes to the file @target. */
	void (*write)(struct context *ctx, const struct word *target);
	/* The text sets a variable. */
	void (*variable)(struct context *ctx, const char *name, size_t len,
			 const struct word *value);
	/* Finds the path of the directory cwd_later; NULL: not known. */
	const char *(*find_cwd)(struct context *ctx);
};

#endif
