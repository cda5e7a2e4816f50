/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_PRUNE_H
#define STET_TXN_PRUNE_H

#include "txn/parts.h"
#include "txn/txn.h"

/* Deletes one directory of a store with all that is in it; none is fine. What that gives back is
 * added to *@bytes, if that is not NULL. -errno. */
int data_remove_dir(const char *dir, uint64_t *bytes);

/* Deletes the transaction's directories, all layers. -errno of the first failure. */
int data_remove(const struct txn_record *r, uint64_t *bytes);

/*
 * Lets transactions go, rows first, then their data; @event is what the books call it. One that
 * cannot go (it is in another state by now, its disk is away) keeps none of the others: -1 with
 * the first such error, when all the rest are gone. Waits for those who tidy up behind one.
 */
int data_let_go(struct home *h, struct goner *v, size_t n, const char *event,
		struct err *e);

void data_retire(const struct txn_record *r);

/* Counts what is in the stores and belongs to no row. */
int txn_orphans(struct home *h, struct prune_result *r, struct err *e);

/*
 * Deletes the data of rolled-back transactions and whatever a crash left in the stores.
 * With @id > 0 only that one. @dry_run: counts only. Pending ones are never touched.
 */
int txn_prune(struct home *h, int64_t id, bool dry_run, struct prune_result *r,
	      struct err *e);

/* Deletes what txn_discard() has put aside: in the background. */
void txn_clear(struct home *h);

#endif
