/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_REDIRECT_H
#define STET_SHELL_REDIRECT_H

#include "shell/state.h"

/* Applies a redirection to @in, the standard input. A file that it writes to is judged. */
void walk_redirect(struct shell *sh, TSNode n, struct flow *in);

/* A command with redirections. */
void walk_redirected(struct shell *sh, TSNode n, const struct flow *in, struct done *out);

#endif
