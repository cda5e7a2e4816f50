/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_TIMELINE_H
#define STET_TIMELINE_TIMELINE_H

#include "ckpt/ckpt.h"
#include "txn/txn.h"

/*
 * Checkpoints of one transaction: taking them, going back to them, thinning them out. Number 0
 * is the beginning. Private directories (/tmp) are not part of them.
 *
 * Calling sequence: timeline_record() makes number 0 with the row of the transaction. Later
 * timeline_open(), any of the functions below, timeline_close(); timeline_settle() when the
 * command has ended, timeline_recover() when the journal says that a change was left half
 * done.
 *
 * Invariants, in addition to those of txn.h:
 *
 * 8. A checkpoint that was reported has its row in the journal and its data in the stores;
 * without the row there is no checkpoint.
 *
 * 9. Going back keeps the state before it as a checkpoint. A process that dies in the middle
 * leaves a row that says where recovery goes back to: the state before. If the sandbox lives
 * on, the request is carried out to its end.
 */
struct timeline;

/*
 * Opens the checkpoints. @change: for changes; then the transaction runs, or is pending and
 * locked by us, and no other process works on its checkpoints until timeline_close().
 */
int timeline_open(struct home *h, struct txn *t, bool change, struct timeline **out,
		  struct err *e);
void timeline_close(struct timeline *c); /* NULL is fine */

/* Oldest first; owned by @c. */
const struct ckpt_records *timeline_all(const struct timeline *c);

/* ERR_USAGE if checkpoint @seq does not exist (0 always does). */
int timeline_exists(const struct timeline *c, int64_t seq, struct err *e);
/* The number before @seq; 0 if @seq is the first. */
int64_t timeline_before(const struct timeline *c, int64_t seq);

struct ckpt_wish {
	const char *cause, *command, *note;
	bool named;
};

/*
 * Takes a checkpoint. *out (owned by @c) is NULL if nothing has changed since the last one:
 * then none was made.
 */
int timeline_take(struct timeline *c, const struct ckpt_wish *w,
		  const struct ckpt_record **out, struct err *e);

/*
 * For a wish where nothing has changed since the last checkpoint: the last one is the one that
 * was wished for. It gets the note, behind the one that it has, and is named if the wish is; a
 * named checkpoint is not used for a wish that is not named. 1: done; 0: there is no last one,
 * or nothing to do.
 */
int timeline_adopt(struct timeline *c, const struct ckpt_wish *w, struct err *e);

/*
 * Gives the last checkpoint, which must exist, the cause, the command and the note of the
 * wish.
 */
int timeline_label(struct timeline *c, const struct ckpt_wish *w, struct err *e);

struct timeline_gone {
	int64_t before, after; /* numbers; after is 0 if nothing had to be done */
	struct change_totals totals;
};

/*
 * Makes the transaction, or only @paths of it (absolute, NULL-ended), what it was at @seq. On
 * failure it is what it was before. If it runs, its processes are stopped meanwhile and see
 * the other state afterwards, through whatever they have open.
 */
int timeline_go(struct timeline *c, int64_t seq, const char *const *paths,
		struct timeline_gone *g, struct err *e);
/* Ends all processes but the command itself, if it runs. */
int timeline_kill(struct timeline *c, struct err *e);

/* How long the processes were stopped, in microseconds. */
int64_t timeline_paused_us(const struct timeline *c);

/* What going to @seq would change. */
int timeline_preview(struct timeline *c, int64_t seq, struct change_totals *t,
		     struct err *e);

/*
 * For a transaction that holds nothing in the end: is there a checkpoint that a user has asked
 * for (the inside asks at every call, which does not count), or that was promised by a
 * rollback to another one? After an error the answer is yes.
 */
bool timeline_worth(struct home *h, int64_t txn);

/*
 * Records a prepared transaction (txn_record()). Whatever its layers hold before anything has
 * run becomes checkpoint 0. On failure the prepared directories are gone.
 */
int timeline_record(struct home *h, struct txn *t, struct err *e);

/* Recovery: goes back to where the journal says. The lock is ours. */
int timeline_recover(struct home *h, struct txn *t, int64_t back_to, struct err *e);
/*
 * After the command has ended, with the lock ours: finishes or takes back a change that was
 * left half done.
 */
int timeline_settle(struct home *h, struct txn *t, struct err *e);

/*
 * Two trees for each layer, in a directory of @c's, that differ as two checkpoints do, or as
 * one and the present state (TIMELINE_NOW); see ck_pair(). timeline_pair_free() frees the
 * layers and deletes the trees.
 */
#define TIMELINE_NOW INT64_MAX
struct timeline_pair {
	struct change_layer *layers;
	size_t n;
	char **dirs;  /* of each layer: holds before/ and after/ */
	char **names; /* what the layers point to */
};

#endif
