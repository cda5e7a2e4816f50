/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_PARTS_H
#define STET_TXN_PARTS_H

#include "base/buf.h"
#include "plan/apply.h"
#include "txn/txn.h"

/* Private to the room. */

/* A transaction's directory, locked: fd, or -EWOULDBLOCK if somebody holds it and we do not
 * want to wait, or another -errno. Who merely looks (lock_is_held) is not in its way. */
int lock_take(const char *dir, bool wait);

/* Does somebody hold it? Any number may look at once. */
bool lock_is_held(const char *dir);

/*
 * flock on the store in the state directory, held until it is closed: shared by those who make data
 * that no row knows yet, exclusive for who deletes such data. fd or -errno.
 */
int home_guard(const struct home *h, int how);

/* Deletes one directory of a store with all that is in it; none is fine. What that gives back is
 * added to *@bytes, if that is not NULL. -errno. */
int data_remove_dir(const char *dir, uint64_t *bytes);

/*
 * A moment that file times can be told from: what was changed before bears an earlier one, what is
 * changed afterwards does not. @dir is a directory of ours, 0700. 0 where the kernel has
 * nothing of that kind (before Linux 6.13): there, one waits for the coarse clock to move on.
 */
int64_t exact_time(int dir);

/* Deletes the transaction's directories, all layers. -errno of the first failure. */
int data_remove(const struct txn_record *r, uint64_t *bytes);

/* What they take on the disk; what cannot be read counts nothing. */
uint64_t data_space(const struct txn_record *r);

/* One that is to be let go: COMMITTED or ROLLED_BACK -> PRUNED. */
struct goner {
	int64_t id;
	enum txn_state from;
	/* Afterwards: */
	bool gone;
	uint64_t bytes; /* that its data gave back */
};

/*
 * Lets transactions go, rows first, then their data; @event is what the books call it. One that
 * cannot go (it is in another state by now, its disk is away) keeps none of the others: -1 with
 * the first such error, when all the rest are gone. Waits for those who tidy up behind one.
 */
int data_let_go(struct home *h, struct goner *v, size_t n, const char *event,
		struct err *e);

/* Puts them aside instead, under a name that txn_clear() knows: deleting takes longer. */
#define GONE ".gone"
void data_retire(const struct txn_record *r);

/*
 * Directories of a transaction that changed nothing, kept for the next one (recycle.c), under
 * this name and their shape: a letter for each layer, which recycle_shape() appends.
 */
#define SPARE "spare-"
void recycle_shape(struct buf *shape, enum layer_kind kind, bool here);
/* Makes the spare of that shape beside @dir become @dir. -ENOENT: there is none. */
int recycle_take(const char *dir, const char *shape);
/* Keeps @dir as the spare. False if it is not clean or there is one already: then it stays. */
bool recycle_keep(const char *dir, const char *shape);

/*
 * Which layers held nothing when the transaction ended: root has one on every writable mount, and
 * a mount may be gone by the time of the commit. Kept in the transaction's directory, by the
 * order of txn_layers(); dropped before anybody may change the layers again, but for those that
 * are away then.
 */
void untouched_keep(const struct txn_record *r, const bool *touched, size_t n);
int untouched_drop(const struct txn_record *r); /* 0 or -errno; none is fine */
bool untouched_was(const struct txn_record *r, size_t layer);

/* Is it not there, because what it was on is not mounted? */
bool layer_away(const char *upper);
/* Says so; @host: what it is a layer of. */
int layer_lost(const struct txn_record *r, const char *host, const char *upper,
	       struct err *e);
/* Is there nothing in it? */
bool layer_holds_nothing(const char *upper);

/* The layers are about to be written to: what they share with the host they share no more
 * (layer/unshare.h). After journal_op_stale(): a redo could not find it again. */
int layers_own(const struct txn_record *r, struct err *e);

/* The layers are about to be changed: takes back what txn_to_disk() has noted. */
void txn_not_on_disk(const struct txn_record *r);

/*
 * Are the layers, as they are now, what txn_to_disk() has written? From the moment that a commit
 * begins to stage (or to take them apart for chosen paths) they are not, whatever becomes of it:
 * it may be killed before it has synced, and what it left undone is not to be seen any more.
 */
bool disk_settled(const struct txn_record *r);
int disk_unsettle(const struct txn_record *r); /* -errno */

/* Puts it on the books; @op may be 0. */
void txn_note(struct home *h, const char *event, int64_t txn, int64_t op);

/* Counts what is in the stores and belongs to no row. */
int txn_orphans(struct home *h, struct prune_result *r, struct err *e);

/* Makes sure nobody drives the transaction and keeps it so: takes t->lock if it is free. */
int txn_own(struct txn *t, struct err *e);

#endif
