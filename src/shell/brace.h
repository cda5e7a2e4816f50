/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_BRACE_H
#define STET_SHELL_BRACE_H

#include <stdbool.h>
#include <stddef.h>

/* Unquoted braces that the shell expands: where they are in the text. */
struct braces {
	size_t open, close;
	bool range; /* {a..b}, not a list */
};

/* Finds the first braces in @s that the shell expands. False: there are none. */
bool find_braces(const char *s, size_t len, struct braces *b);

/* The position behind the quoted or expanded part that begins at @i; @i if none begins there. */
size_t skip_quoted(const char *s, size_t i, size_t len);

#endif
