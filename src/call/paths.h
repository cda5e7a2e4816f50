/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CALL_PATHS_H
#define STET_CALL_PATHS_H

#include "call/ctx.h"
#include "commit/commit.h"

/* Paths that a user chose: files, directories with all that is below them, patterns. */
struct op_paths {
	char **v; /* absolute paths and patterns, NULL-ended; NULL: none was chosen */
	char **typed;
	char **names; /* typed[i] with no link of the host's followed */
	size_t *word; /* v[i] was made of typed[word[i]] */
};
void op_paths_free(struct op_paths *p);

/*
 * Makes them absolute, from the current directory on. Directories on the way are resolved,
 * last components are not; nothing need exist. A word with *, ? or [ in it may be a
 * pattern or a name: it is both, until one of the functions below has decided which. Free
 * @out after a failure, too.
 */
int op_paths_make(struct op_ctx *ctx, char *const *typed, struct op_paths *out,
		  struct err *e);

/*
 * Decides by what the transaction changed: the name of something is that alone, and no pattern.
 * Where the host has a link and the transaction a directory, that is meant.
 * ERR_USAGE if one of them chooses nothing.
 */
int op_paths_check(struct op_paths *p, const struct txn_record *rec, struct err *e);

/*
 * op_paths_make() for the paths that an operation has changed (txn_op_paths()); choosing
 * nothing is no error here.
 */
int op_paths_settle(struct op_paths *p, struct home *h, const struct txn *t, int64_t op,
		    bool redo, struct err *e);

/* Does the word name a path of one of the notes, or a path below it? It may be a link to it. */
bool op_paths_name(struct op_ctx *ctx, const char *typed, const struct path_notes *n);

#endif
