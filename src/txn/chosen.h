/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_CHOSEN_H
#define STET_TXN_CHOSEN_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Paths that a user chose, as NULL-ended lists. An entry without * ? [ is a path and means it
 * and everything below it. Any other entry is a pattern of fnmatch(3); a pattern in which each
 * of these characters is escaped is a path, too.
 */

/* The entry that means @path and what is below it, and nothing else; to be freed. */
char *chosen_literal(const char *path);

/* Is the entry a pattern, and not a path? */
bool chosen_is_pattern(const char *entry);

/* Is @path an entry of the list, below an entry, or matched by a pattern of the list? */
bool chosen_has(const char *const *list, const char *path);

/*
 * Which of two contradicting lists counts for @path? If both match: the list that names @path
 * exactly; else of two directories above @path the inner one. If neither list is stronger:
 * CHOSEN_BOTH.
 */
enum chosen_side { CHOSEN_NEITHER, CHOSEN_OURS, CHOSEN_THEIRS, CHOSEN_BOTH };
enum chosen_side chosen_side(const char *const *ours, const char *const *theirs,
			     const char *path);

/* Sets the error for CHOSEN_BOTH: ERR_USAGE. Returns -1. */
int chosen_twice(const char *path, struct err *e);

#endif
