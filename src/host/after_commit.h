/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_AFTER_COMMIT_H
#define STET_HOST_AFTER_COMMIT_H

#include "diff/change.h"
#include "layer/ident.h"
#include "txn/txn.h"

/*
 * Digests of what a commit has put on the host, noted when it is done, off the critical path.
 * With them an undo tells a file that was merely touched since, or saved again unchanged, from
 * one that was changed. Without them, and beyond a bounded amount, the undo judges by times,
 * and is stricter.
 */

/* Notes them for operation @op, a commit of @t that is done. What has been changed by now is left
 * out. Failing does no harm. */
int after_commit_note(struct home *h, const struct txn *t, int64_t op, struct err *e);

/* The list of operation @op, in the directory of its transaction. */
void after_commit_name(char name[32], int64_t op);

/* For asking; private to the room. Nothing is read before the first question, and what cannot be
 * read is not known. */
struct after_commit;

/*
 * Knows what the host should have when the commit @op of @t is undone. All of @h, @t and
 * @layers must outlive it.
 */
struct after_commit *after_commit_new(struct home *h, const struct txn *t, int64_t op,
				      const struct change_layer *layers, size_t n);
/* Knows what the host should have when a commit of @t is done again: what was there before. */
struct after_commit *after_commit_new_redo(struct home *h, const struct txn *t,
					   const struct change_layer *layers, size_t n);
void after_commit_free(struct after_commit *l); /* NULL is fine */

/* Is the file that the host has there now still what it was, in content and attributes? */
bool after_commit_is(struct after_commit *l, uint32_t layer, const char *rel,
		     const struct ident *now);
/* Reads all there is to know, for one who must not use the journal when it asks. */
void after_commit_read(struct after_commit *l);
/* after_commit_is() by path. */
bool after_commit_is_at(struct after_commit *l, const char *path,
			const struct ident *now);

#endif
