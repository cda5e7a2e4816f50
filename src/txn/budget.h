/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_BUDGET_H
#define STET_TXN_BUDGET_H

#include "txn/parts.h"
#include "txn/txn.h"

/*
 * History has a budget: committed and rolled-back transactions are kept for undo until they
 * are too old or too large. Pending transactions are never touched.
 */
struct budget {
	int64_t keep_last;	/* the newest so many stay; 0: no such rule */
	int64_t keep_within_ms; /* those that ended within it stay; 0: no such rule */
	uint64_t max_bytes;	/* then the oldest go until the rest fits; 0: no limit */
	bool spare_newest; /* the newest commit that stands stays, whatever its size */
	bool dry_run;
};

struct budget_result {
	uint64_t transactions, bytes; /* forgotten, and the space they gave back */
	uint64_t held;		      /* what the rest still holds */
};

/* Applies the budget. With no rule nothing is forgotten, and `held` is filled in. */
int txn_forget(struct home *h, const struct budget *b, struct budget_result *r,
	       struct err *e);

/*
 * Forgets one transaction, whatever the budget: COMMITTED or ROLLED_BACK -> PRUNED, else
 * ERR_STATE.
 */
int txn_forget_one(struct home *h, struct txn *t, bool dry_run, uint64_t *bytes,
		   struct err *e);

/* The bytes that the history held when it was last trimmed; 0: never. Reads one small file. */
uint64_t txn_held(const struct home *h);

/*
 * The default: 30 days, and a tenth of the filesystem of the state directory. The newest
 * commit stays whatever its size, since the user was just told how to undo it.
 */
struct budget budget_default(const struct home *h);

/*
 * Applies the default once an hour, and whenever the free space has shrunk by a quarter of the
 * budget since the last time. For the background.
 */
int txn_trim(struct home *h, struct err *e);

/*
 * The bytes that the data of @r takes on the disk; directories that cannot be read count
 * nothing.
 */
uint64_t data_space(const struct txn_record *r);

#endif
