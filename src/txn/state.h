/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_STATE_H
#define STET_TXN_STATE_H

#include "txn/txn.h"

/* The directory that it works on in place (inplace/inplace.h), or NULL if it does not. */
const char *txn_in_place(const struct txn_record *r);

/*
 * Is what was decided about it final? The tree that it worked on in place went back to what the
 * snapshot is, or the snapshot is gone: nothing takes that back. What was committed beside the
 * tree can be undone.
 */
bool txn_is_final(const struct txn_record *r);

/*
 * Makes sure that it is PENDING and takes its lock; an interrupted one is ended first, and is then
 * pending like any other. ERR_STATE in any other state, or while it runs.
 */
int txn_pending(struct home *h, struct txn *t, struct err *e);

#endif
