/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_TIMELINE_H
#define STET_TIMELINE_TIMELINE_H

#include "ckpt/ckpt.h"
#include "txn/txn.h"

/*
 * Checkpoints of one transaction: taking them, going back to them, thinning them out.
 * Number 0 is the beginning. Private directories (/tmp) are not part of them.
 *
 * Promises, in addition to those of txn.h:
 *  8. A checkpoint that was reported has its row in the journal and its data in the stores;
 *     without the row there is no checkpoint.
 *  9. Going back keeps the state before it as a checkpoint. Whoever does it and dies leaves
 *     a row that says where recovery goes back to: the state before. If the sandbox lives on,
 *     what was asked for is done to its end.
 */
struct timeline;

/*
 * Opens them, for changes if @change: then the transaction runs, or is pending and locked by
 * us, and nobody else works on its checkpoints until timeline_close().
 */
int timeline_open(struct home *h, struct txn *t, bool change, struct timeline **out,
		  struct err *e);
void timeline_close(struct timeline *c); /* NULL is fine */

/* Oldest first; owned by @c. */
const struct ckpt_records *timeline_all(const struct timeline *c);

/* ERR_USAGE if there is no such checkpoint (0 always is). */
int timeline_exists(const struct timeline *c, int64_t seq, struct err *e);
/* The one before @seq: 0 if it is the first. */
int64_t timeline_before(const struct timeline *c, int64_t seq);

struct ckpt_wish {
	const char *cause, *command, *note;
	bool named;
};

/* *out (owned by @c; NULL: nothing has changed since the last one, none was made). */
int timeline_take(struct timeline *c, const struct ckpt_wish *w,
		  const struct ckpt_record **out, struct err *e);

/*
 * Nothing has changed since the last one: then that is the one that was wished for. It gets
 * the note, behind the one that it has, and is named if the wish is; what somebody has named
 * is not for a wish that is not. 1: done; 0: there is none, or nothing to be done.
 */
int timeline_adopt(struct timeline *c, const struct ckpt_wish *w, struct err *e);

/* Gives the last one, which there is, the wish's cause and command, and its note as well. */
int timeline_label(struct timeline *c, const struct ckpt_wish *w, struct err *e);

struct timeline_gone {
	int64_t before, after; /* numbers; after is 0 if nothing had to be done */
	struct change_totals totals;
};

/*
 * Makes the transaction what it was at @seq, or only @paths of it (absolute, NULL-ended).
 * On failure it is what it was before. If it runs, its processes are stopped meanwhile and
 * see the other state afterwards, through whatever they have open.
 */
int timeline_go(struct timeline *c, int64_t seq, const char *const *paths,
		struct timeline_gone *g, struct err *e);
/* Ends all processes but the command itself, if it runs. */
int timeline_kill(struct timeline *c, struct err *e);

/* How long its processes were stopped, in microseconds. */
int64_t timeline_paused_us(const struct timeline *c);

/* What going there would change. */
int timeline_preview(struct timeline *c, int64_t seq, struct change_totals *t,
		     struct err *e);

/*
 * Of a transaction that holds nothing in the end: is there a state in between that somebody has
 * asked for (outside: the inside does at every call), or was promised when he went back to another
 * one? What cannot be read counts.
 */
bool timeline_worth(struct home *h, int64_t txn);

/*
 * Records a transaction that was prepared (txn_record()). What its layers hold before anything has
 * run becomes checkpoint 0. On failure what was prepared is gone.
 */
int timeline_record(struct home *h, struct txn *t, struct err *e);

/* Recovery: goes back where the journal says. The lock is ours. */
int timeline_recover(struct home *h, struct txn *t, int64_t back_to, struct err *e);
/* The command has ended, and the lock is ours: was a change left half way? */
int timeline_settle(struct home *h, struct txn *t, struct err *e);

/*
 * Two trees for each layer, in a directory of @c's, that differ as two checkpoints do, or as
 * one and the present state (TIMELINE_NOW) do; see ck_pair(). The layers are to be freed with
 * timeline_pair_free(), which deletes the trees.
 */
#define TIMELINE_NOW INT64_MAX
struct timeline_pair {
	struct change_layer *layers;
	size_t n;
	char **dirs;  /* of each layer: holds before/ and after/ */
	char **names; /* what the layers point to */
};

#endif
