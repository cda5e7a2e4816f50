/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_BUILTIN_H
#define STET_SHELL_BUILTIN_H

#include "shell/state.h"

/* Runs a simple command: a function, a builtin or a program. */
void shell_command(struct shell *sh, struct cmd *c, struct done *out);

/*
 * Runs the function or alias that the command names. False: there is none, or there may be
 * none, and a builtin or program of that name may run instead.
 */
bool run_function(struct shell *sh, struct cmd *c, struct done *out);

/* Runs the traps that are newer than @until. */
void run_traps(struct shell *sh, const struct trap *until);

#endif
