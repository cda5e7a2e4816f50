/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_MARKS_H
#define STET_TXN_MARKS_H

#include "txn/parts.h"
#include "txn/txn.h"

/*
 * Which layers held nothing when the transaction ended: root has one on every writable mount, and
 * a mount may be gone by the time of the commit. Kept in the transaction's directory, by the
 * order of txn_layers(); dropped before anybody may change the layers again, but for those that
 * are away then.
 */
void untouched_keep(const struct txn_record *r, const bool *touched, size_t n);

int untouched_drop(const struct txn_record *r); /* 0 or -errno; none is fine */
bool untouched_was(const struct txn_record *r, size_t layer);

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

/*
 * A command has ended, and nothing uses the layers any more. @untouched: a bit for each that holds
 * nothing, so that it may go away, or has gone already, with what it was on.
 */
void txn_note_idle(struct txn_record *r, uint64_t untouched);

/* Keeps that for who reads of the transaction later, and finds some of them gone. */
void txn_keep_idle(const struct txn_record *r);

/* Another command is to run in the layers: those that are there may be touched. True: some are
 * gone, and must not be part of its view. */
bool txn_use_again(struct txn_record *r);

/* Are its layers on the disk? Else a power cut would cost the transaction. */
bool txn_on_disk(const struct txn_record *r);

/*
 * Writes them there (the whole filesystem: in the background) and notes it, if nobody has begun
 * to change them since txn_to_disk_begin(), for which the lock is ours; it may be given up then.
 * That gives a descriptor, to be closed, or -1.
 */
int txn_to_disk_begin(const struct txn_record *r);
void txn_to_disk(const struct txn_record *r, int ticket);

#endif
