/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SHELL_CWD_H
#define STET_SHELL_CWD_H

#include "shell/context.h"

/* A current directory that is looked up only when its path is needed. */
extern const char cwd_later[];

/* The path that @cwd, now or earlier the directory of @ctx, stands for; NULL: not known. */
const char *cwd_known(struct context *ctx, const char *cwd);

/* @path, from @cwd if it is relative, without ".", ".." and "//"; NULL if @cwd is not known. */
const char *cwd_resolve(struct context *ctx, const char *cwd, const char *path);

#endif
