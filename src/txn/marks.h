/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_MARKS_H
#define STET_TXN_MARKS_H

#include "txn/parts.h"
#include "txn/txn.h"

/*
 * The mark `untouched` says which layers held nothing when the transaction ended. Root has a
 * layer on every writable mount, and a mount may be gone by the time of the commit. The layers
 * are in the order of txn_layers(). The mark is dropped before anybody may change the layers
 * again, except for layers that are unmounted then.
 */
void untouched_keep(const struct txn_record *r, const bool *touched, size_t n);

int untouched_drop(const struct txn_record *r); /* 0 or -errno; none is fine */
bool untouched_was(const struct txn_record *r, size_t layer);

/*
 * Before the layers are written to again: gives every inode that the host has under another
 * name a copy of its own (layer/unshare.h). Call journal_op_stale() first, since a redo could
 * not find such an inode again.
 */
int layers_own(const struct txn_record *r, struct err *e);

/* Before the layers are changed: removes the mark that txn_to_disk() has made. */
void txn_not_on_disk(const struct txn_record *r);

/*
 * Are the layers, as they are now, on the disk? A commit calls disk_unsettle() before it
 * begins to stage, or to split the layers for chosen paths: from then on the answer is no,
 * since the commit may be killed before it has synced.
 */
bool disk_settled(const struct txn_record *r);

int disk_unsettle(const struct txn_record *r); /* -errno */

/*
 * After a command has ended and its mounts are gone. @untouched has a bit for each layer that
 * holds nothing: the filesystem of such a layer may be unmounted, or already is.
 */
void txn_note_idle(struct txn_record *r, uint64_t untouched);

/*
 * Writes what txn_note_idle() was told into the mark, for processes that find a layer
 * unmounted later.
 */
void txn_keep_idle(const struct txn_record *r);

/*
 * Before another command runs in the layers: layers that are mounted count as touched from now
 * on. True if some are unmounted: the view must leave them out.
 */
bool txn_use_again(struct txn_record *r);

/* Are the layers on the disk? If not, a power cut would cost the transaction. */
bool txn_on_disk(const struct txn_record *r);

/*
 * Writes the filesystems of the layers to the disk and makes the mark `durable`, unless the
 * layers were changed since txn_to_disk_begin(). That call needs the lock; txn_to_disk() does
 * not, and may run in the background. txn_to_disk_begin() returns a descriptor that the caller
 * closes, or -1.
 */
int txn_to_disk_begin(const struct txn_record *r);
void txn_to_disk(const struct txn_record *r, int ticket);

#endif
