/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_DECLARE_H
#define STET_SHELL_DECLARE_H

#include "shell/state.h"

/* X=y, alone or before a command. */
void walk_assignment(struct shell *sh, TSNode n);

/* declare, export, local, readonly, typeset or unset, as the grammar parses it. */
void walk_declaration(struct shell *sh, TSNode n);

/* Carries out such a declaration that is given as words. False: the command is none. */
bool run_declaration(struct shell *sh, const struct cmd *c);

/* The values of the variables that the arithmetic sets are not known. */
void walk_arithmetic(struct shell *sh, const char *text, size_t len);

/* Walks over each $(…) and `…` in @text: they run if a subscript holds them. */
void walk_subscripts(struct shell *sh, const char *text);

/* Walks over a subscript in the value, which runs where arithmetic uses the value. */
void walk_value(struct shell *sh, const struct word *w);

#endif
