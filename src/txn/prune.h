/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_PRUNE_H
#define STET_TXN_PRUNE_H

#include "txn/parts.h"
#include "txn/txn.h"

/*
 * Deletes directory @dir of a store with everything in it. A missing directory is no error.
 * The bytes that this gives back are added to *@bytes, unless that is NULL. -errno.
 */
int data_remove_dir(const char *dir, uint64_t *bytes);

/*
 * Deletes all directories of the transaction, in every store. Goes on after a failure; -errno
 * of the first one.
 */
int data_remove(const struct txn_record *r, uint64_t *bytes);

/*
 * Deletes transactions: their rows become PRUNED first, then their data goes. @event is the
 * name of this in the audit. A transaction that cannot go (it is in another state by now, its
 * disk is not mounted) does not keep the others: -1 with the first such error when all the
 * rest are gone. Waits for housekeeping of a transaction to end.
 */
int data_let_go(struct home *h, struct removal *v, size_t n, const char *event,
		struct err *e);

/*
 * Renames the directories of the transaction for txn_clear(), since deleting takes longer; or keeps
 * them for the next transaction, if they are clean (recycle.h).
 */
void data_retire(const struct txn_record *r);

/* Counts the data in the stores that belongs to no row. */
int txn_orphans(struct home *h, struct prune_result *r, struct err *e);

/*
 * Deletes the data of rolled-back transactions, and data in the stores that belongs to no row.
 * With @id > 0 only that transaction. @dry_run counts only. Pending transactions are never
 * touched.
 */
int txn_prune(struct home *h, int64_t id, bool dry_run, struct prune_result *r,
	      struct err *e);

/* Deletes the directories that data_retire() has renamed. For the background. */
void txn_clear(struct home *h);

#endif
