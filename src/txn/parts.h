/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_PARTS_H
#define STET_TXN_PARTS_H

#include "base/buf.h"
#include "plan/apply.h"
#include "txn/txn.h"

/* Private to the room. */

/* A transaction whose data is to be deleted: COMMITTED or ROLLED_BACK -> PRUNED. */
struct removal {
	int64_t id;
	enum txn_state from;
	/* Afterwards: */
	bool gone;
	uint64_t bytes; /* that its data gave back */
};

/* Suffix of a transaction directory that waits for txn_clear() to delete it. */
#define GONE ".gone"

/*
 * Prefix of a clean transaction directory that the next transaction can take over (recycle.h).
 * Its shape follows: a letter for each layer, as recycle_shape() writes it.
 */
#define SPARE "spare-"

#endif
