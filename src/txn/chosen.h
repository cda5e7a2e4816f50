/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_CHOSEN_H
#define STET_TXN_CHOSEN_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Paths that a user chose, as NULL-ended lists. An entry without * ? [ is a path, as it is,
 * with all that is below it. Any other is a pattern of fnmatch(3); one in which each of
 * these is escaped is a path, too.
 */

/* The entry that means @path and what is below it, and nothing else; to be freed. */
char *chosen_literal(const char *path);

/* Has the entry a meaning as a pattern? */
bool chosen_is_pattern(const char *entry);

/* Is @path one of the list, below one of it, or matched by a pattern in it? */
bool chosen_has(const char *const *list, const char *path);

/*
 * Two lists that contradict each other: which of them is @path in? Where both have it, who
 * names it exactly is meant, and of two directories around it the inner one. Otherwise none
 * is stronger than the other: CHOSEN_BOTH.
 */
enum chosen_side { CHOSEN_NEITHER, CHOSEN_OURS, CHOSEN_THEIRS, CHOSEN_BOTH };
enum chosen_side chosen_side(const char *const *ours, const char *const *theirs,
			     const char *path);

/* What is to be said of CHOSEN_BOTH: -1, ERR_USAGE. */
int chosen_twice(const char *path, struct err *e);

#endif
