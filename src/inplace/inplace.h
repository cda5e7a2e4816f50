/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_INPLACE_INPLACE_H
#define STET_INPLACE_INPLACE_H

#include "commit/commit.h"
#include "timeline/timeline.h"

/*
 * Transactions that work on the real tree: a btrfs subvolume, of which a snapshot was made at
 * the beginning, and one at the end. What they changed is what differs between the two; rolling
 * back makes that what it was. Everything else that they write is captured as always.
 */

/*
 * Fails with ERR_UNSUPPORTED if @dir is not the top of a subvolume that this user may snapshot and
 * write to, or if another subvolume is nested in @dir outside of the paths in @closed, which are
 * those of --read-only (NULL-ended or NULL).
 */
int inplace_check(const char *dir, char *const *closed, struct err *e);

/*
 * Looks again for nested subvolumes, before the command or a visit runs: ERR_UNSUPPORTED if
 * one lies outside of what the transaction's record says is hidden or read-only. Returns 0 for
 * a transaction that does not work in place.
 */
int inplace_check_again(const struct txn *t, struct err *e);

/* Makes the snapshot; before anything runs. The layers are there. */
int inplace_begin(const struct txn *t, struct err *e);

/*
 * Everything that a transaction changed, as layers: its overlays and, if it worked in place,
 * two small trees that differ as snapshot and tree do. Close it in any case.
 */
struct txn_sides {
	struct change_layer *v;
	size_t n;
	struct change_layer *overlays; /* what @v begins with; owned */
	struct timeline_pair pair;
};
int txn_sides_open(const struct txn_record *r, struct txn_sides *s, struct err *e);
void txn_sides_close(struct txn_sides *s);

/*
 * The command has ended: the state that it leaves is kept, so that what others do to the tree
 * later is known as theirs. If that fails, nobody knows whose a change is.
 */
void inplace_end(const struct txn *t);
/*
 * Does the snapshot of the end exist? Without it, a mount that was made meanwhile may cover changes
 * of the command. True for a transaction that does not work in place.
 */
bool inplace_has_end(const struct txn *t);

/*
 * A visit begins. 1: what it does is the transaction's, inplace_end() is to follow; 0: there is
 * others' work since the end, from which it could not be told: it counts as theirs.
 */
int inplace_resume(const struct txn *t, struct err *e);

/*
 * txn_rollback(), and what it changed in the tree becomes what it was; what only others changed
 * since its end is left as it is. What both did is a conflict: ERR_CONFLICT, with the paths, and
 * nothing was done. May be repeated if it was interrupted: the transaction is pending until it is
 * done. What was there before is kept as a snapshot.
 */
struct give_up {
	/* As in struct commit_wish: conflicts there are rolled back, or left as they are. */
	const char *const *ours, *const *theirs;
	bool dry_run;		     /* only say whether there are any */
	struct path_notes conflicts; /* out; to be freed */
	uint64_t kept;		     /* out: what others made or changed, and was left */
};

/*
 * After a commit that left it pending, for there was nothing to do: the tree stays what it is,
 * and the snapshot goes with the transaction. Does nothing to others. 1 if it did, else 0.
 */
int inplace_keep(struct home *h, struct txn *t, struct err *e);

#endif
