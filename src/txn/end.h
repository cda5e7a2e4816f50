/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_END_H
#define STET_TXN_END_H

#include "txn/parts.h"
#include "txn/txn.h"

/* A transaction's directory, locked: fd, or -EWOULDBLOCK if somebody holds it and we do not
 * want to wait, or another -errno. Who merely looks (lock_is_held) is not in its way. */
int lock_take(const char *dir, bool wait);

/* Does somebody hold it? Any number may look at once. */
bool lock_is_held(const char *dir);

/* Makes sure nobody drives the transaction and keeps it so: takes t->lock if it is free. */
int txn_own(struct txn *t, struct err *e);

void txn_close(struct txn *t); /* gives the lock up */

/* Ends and forgets a transaction that changed nothing (or never ran): ACTIVE -> PRUNED. Its data
 * is put aside for txn_clear(). One journal write instead of three. */
int txn_discard(struct home *h, struct txn *t, int exit_status, const char *reason,
		struct err *e);

/* ACTIVE -> FROZEN with the result of the run. The lock stays until txn_close(). */
int txn_end(struct home *h, struct txn *t, int exit_status, const char *reason,
	    struct err *e);

/* PENDING or interrupted -> ROLLED_BACK; ERR_STATE while it runs. Constant time: the data
 * stays where it is until it is pruned. */
int txn_rollback(struct home *h, struct txn *t, struct err *e);

#endif
