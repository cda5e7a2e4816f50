/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SHELL_SHELL_H
#define STET_SHELL_SHELL_H

#include "shell/cmd.h"
#include "shell/context.h"

/*
 * Follows shell text that runs in a shell of its own, and reports what it does to @ctx. Its standard input is that of @c (NULL:
 * none is known). If @args is not 0, the words of @c from number @args on are the parameters
 * from $1 on; otherwise the parameters are not known.
 */
void shell_run(struct context *ctx, const char *text, size_t len, const struct cmd *c,
	       size_t args);

#endif
