/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_HISTORY_H
#define STET_COMMIT_HISTORY_H

#include "commit/commit.h"
#include "plan/plan.h"

/*
 * The operations of one transaction, and what of them stands. Private to the room.
 *
 * Undo takes the newest commit or rollback that stands; redo the newest undo that was not taken
 * back: a stack. A new commit or rollback, and whatever else changes the layers, makes all that
 * was undone until then final (journal_op_stale()).
 *
 * Each has a list. An undo goes backwards through the list of its commit or, if there is
 * something to be left out or decided, through one of its own; its redo forwards through the
 * same. So a step stands if the last operation in whose list it is was none that took it back.
 */
struct history {
	struct op_record *v; /* oldest first */
	size_t n;
};
int history_read(struct home *h, int64_t txn, struct history *out, struct err *e);
void history_free(struct history *hi);

const struct op_record *history_find(const struct history *hi, int64_t id); /* or NULL */
/* The operations that undo and redo are about; NULL: none. */
const struct op_record *history_undoable(const struct history *hi);
const struct op_record *history_redoable(const struct history *hi);

/* Which steps of a commit stand. */
struct standing;

/* @dir: the transaction's. */
int standing_open(int dir, const struct history *hi, const struct op_record *commit,
		  struct standing **out, struct err *e);
void standing_free(struct standing *s); /* NULL is fine */

/* All do, as the commit's list says. */
bool standing_is_plain(const struct standing *s);

/*
 * Does step *@r of the commit's list stand? If a redo has done it in another way (the host had
 * something else there by then), *@r becomes that. Attributes of directories always stand:
 * setting them twice does no harm. 1 or 0; -1 if it cannot be told.
 */
int standing_step(const struct standing *s, struct plan_rec *r, struct err *e);

/* The steps of its commits that are not taken back: newest commit first, each in its order. */
int txn_each_step(struct home *h, const struct txn_record *rec, plan_fn *fn, void *arg,
		  struct err *e);

#endif
