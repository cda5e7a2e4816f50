/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_WALK_H
#define STET_SHELL_WALK_H

#include "shell/state.h"

/*
 * The walk over the syntax tree of a text. @in is the standard input of the node (NULL: that of
 * the shell); @out gets the programs that ran.
 */
void shell_walk(struct shell *sh, TSNode n, const struct flow *in, struct done *out);
void shell_children(struct shell *sh, TSNode n, const struct flow *in, struct done *out);

/* Walks over the children of @n in a subshell. */
void shell_sub(struct shell *sh, TSNode n, const struct flow *in, struct done *out);

/* Parses @text and walks over it in this same shell. */
void shell_eval(struct shell *sh, const char *text, const struct flow *in,
		struct done *out);

void walk_command(struct shell *sh, TSNode n, const struct flow *in, struct done *out);

/* a | b | c. @last: the standard input of the last command, by redirection; or NULL. */
void walk_pipe(struct shell *sh, TSNode n, const struct flow *in, const struct flow *last,
	       struct done *out);

/* A pipe, a list or a command, with @last as above. */
void walk_last(struct shell *sh, TSNode n, const struct flow *in, const struct flow *last,
	       struct done *out);

#endif
