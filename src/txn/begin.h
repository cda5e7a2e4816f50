/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_BEGIN_H
#define STET_TXN_BEGIN_H

#include "txn/parts.h"
#include "txn/txn.h"

/* Is the directory @upper empty? */
bool layer_holds_nothing(const char *upper);

/*
 * Makes the directories of a new transaction in the stores and takes its lock; @v gets the
 * layer directories filled in. On failure nothing is left behind. No journal is needed: no
 * process knows of the directories until txn_record().
 */
int txn_prepare(struct home *h, struct view *v, const char *name, char *const argv[],
		const char *options, struct txn *t, struct err *e);

/*
 * Fixes the moment at which the transaction begins: every change of the host before this call
 * has an older time. False if the layers already hold something, which has to become
 * checkpoint 0 (timeline_record()).
 */
bool txn_start(struct txn *t);

/*
 * Adds the row: from here on the transaction exists. After txn_start(). On failure the
 * prepared directories are gone.
 */
int txn_record(struct home *h, struct txn *t, struct err *e);

/* Takes back txn_prepare(), instead of txn_record(). */
void txn_abandon(struct txn *t);

/*
 * Makes a PENDING or interrupted transaction ACTIVE again, for explore. @v was made with
 * view_request.resume; its layers are made ready to be mounted again.
 */
int txn_resume(struct home *h, struct view *v, struct txn *t, struct err *e);

/*
 * Makes the layers of @v, which are not mounted now, ready for another command of the same
 * run. @v must have every layer of @r that holds anything.
 */
int txn_again(const struct txn_record *r, const struct view *v, struct err *e);

#endif
