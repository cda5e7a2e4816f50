/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_PARTS_H
#define STET_TXN_PARTS_H

#include "base/buf.h"
#include "plan/apply.h"
#include "txn/txn.h"

/* Private to the room. */

/* One that is to be let go: COMMITTED or ROLLED_BACK -> PRUNED. */
struct goner {
	int64_t id;
	enum txn_state from;
	/* Afterwards: */
	bool gone;
	uint64_t bytes; /* that its data gave back */
};

/* Puts them aside instead, under a name that txn_clear() knows: deleting takes longer. */
#define GONE ".gone"

/*
 * Directories of a transaction that changed nothing, kept for the next one (recycle.c), under
 * this name and their shape: a letter for each layer, which recycle_shape() appends.
 */
#define SPARE "spare-"

#endif
