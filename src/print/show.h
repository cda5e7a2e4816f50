/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_SHOW_H
#define STET_PRINT_SHOW_H

#include <stdint.h>

#include "commit/commit.h"
#include "diff/change.h"
#include "print/print.h"

/* How things look to people. All append to a buffer, safe for a terminal. */

/* Relative to @workspace (may be NULL) if below it; else absolute, with ~ for $HOME. */
void show_path(struct buf *b, const struct console *c, const char *workspace,
	       const char *path);

/* argv as one could type it into a shell. */
void show_argv(struct buf *b, char *const *argv);

/* "2 added, 1 changed, 14 deleted (12 KiB)". */
void show_totals(struct buf *b, const struct change_totals *t);

/* "1.3 s", from microseconds. */
void show_duration(struct buf *b, int64_t us);

/* "exit status 0", "killed by SIGTERM", "time limit", "running"…, how a command ended. */
void show_end(struct buf *b, const struct txn_record *r);

/* "write-through ~/.cache, …"; returns whether there is anything. */
bool show_effects(struct buf *b, const struct console *c, const struct txn_record *r);

/* One line "  D src/  (14 files)\n" of a list of changes; @from: rename, or NULL. */
void show_change(struct buf *b, const struct console *c, const char *workspace,
		 char letter, const char *path, const char *from, bool dir,
		 uint64_t below, const char *note);

/* A colour (SGR parameters, such as "31") or, with NULL, back to none; nothing without
 * colour. */
void show_color(struct buf *b, const struct console *c, const char *sgr);

/* @path as one could type it here: relative if below the current directory, quoted for a
 * shell if need be, whatever bytes it holds. */
void show_typed(struct buf *b, struct console *c, const char *path);

/* Paths, and what is to be said about each, a line each; the first of many. */
void show_notes(struct buf *b, const struct console *c, const char *workspace,
		const struct path_notes *n);

/* Columns that a UTF-8 text takes, roughly: one per code point. */
size_t show_width(const char *s);

/* @rows times @columns cells as a table, the first row being its head; frees the cells,
 * not the array. Lines are cut at the edge of a terminal. */
void show_table(struct console *c, struct buf *cells, size_t rows, size_t columns);

/* Writes the buffer to c->out and empties it. */
void show_flush(struct console *c, struct buf *b);

#endif
