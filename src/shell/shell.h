/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SHELL_SHELL_H
#define STET_SHELL_SHELL_H

#include "shell/cmd.h"
#include "shell/context.h"

/*
 * Follows shell text that runs in a shell of its own, as far as the text tells what it does.
 * The caller fills in a struct context; on the way the functions in its `events` are told of
 * commands, writes, settings of variables, and of all that cannot be known.
 *
 * The standard input of the shell is that of @c (NULL: none is known). If @args is not 0, the
 * words of @c from number @args on are the parameters from $1 on; otherwise the parameters are
 * not known. Behind the call the directory and the place in @ctx are as they were before.
 */
void shell_run(struct context *ctx, const char *text, size_t len, const struct cmd *c,
	       size_t args);

#endif
