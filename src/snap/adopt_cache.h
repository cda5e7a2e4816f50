/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_ADOPT_CACHE_H
#define STET_SNAP_ADOPT_CACHE_H

#include <stdbool.h>

/*
 * Which trees were looked through lately, and nothing was found. A look costs 2.5 µs for each
 * entry, which nobody minds who types a command, and everybody whose agent starts one
 * transaction after the other.
 *
 * The memory is a file of fixed size that may be lost, torn or old: then a tree is looked
 * through once more.
 */

/* Was nothing found in @dir within the last ADOPT_CACHE_SECONDS? */
enum { ADOPT_CACHE_SECONDS = 60 };
bool adopt_cache_fresh(const char *memory, const char *dir);

/* Nothing was found in @dir. It is remembered if that can be done. */
void adopt_cache_note(const char *memory, const char *dir);

#endif
