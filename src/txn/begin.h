/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_BEGIN_H
#define STET_TXN_BEGIN_H

#include "txn/parts.h"
#include "txn/txn.h"

/* Is there nothing in it? */
bool layer_holds_nothing(const char *upper);

/*
 * Makes the directories of a new transaction in the stores and takes its lock; @v gets the
 * layer directories filled in. On failure nothing is left behind. Needs no journal: what
 * it makes is known to none until txn_record().
 */
int txn_prepare(struct home *h, struct view *v, const char *name, char *const argv[],
		const char *options, struct txn *t, struct err *e);

/*
 * Fixes the moment at which it begins: what was changed on the host before is older. False if its
 * layers hold something already, which is to be its first checkpoint (timeline_record()).
 */
bool txn_start(struct txn *t);

/* Records it: from here on it exists. After txn_start(). On failure what was prepared is gone. */
int txn_record(struct home *h, struct txn *t, struct err *e);

/* Takes back what was prepared and never recorded. */
void txn_abandon(struct txn *t);

/*
 * Takes an ended (or interrupted) one up again, for explore: PENDING -> ACTIVE. @v was
 * made with view_request.resume; its layers are made ready to be mounted again.
 */
int txn_resume(struct home *h, struct view *v, struct txn *t, struct err *e);

/* For another command in the same run: makes the layers of @v, which nothing mounts now, ready
 * to be mounted once more. All of @r that hold something must be among them. */
int txn_again(const struct txn_record *r, const struct view *v, struct err *e);

#endif
