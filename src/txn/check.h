/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_CHECK_H
#define STET_TXN_CHECK_H

#include "txn/txn.h"

/* Invariant 3 alone (txn.h), which costs a few lookups; ERR_CORRUPT says what is missing. */
int txn_check_data(const struct txn_record *r, struct err *e);

/*
 * All invariants of txn.h that can be told from the outside. ERR_CORRUPT says which one is broken,
 * and by what.
 */
int txn_check(struct home *h, const struct txn *t, struct err *e);

/*
 * For the public functions of txn, timeline and commit: in builds with faults (tests), checks the
 * transaction now and when the scope ends, and aborts with the broken invariant. Nothing
 * otherwise.
 */
#ifdef STET_FAULTS
struct txn_checked {
	struct home *h;
	const struct txn *t;
	const char *where;
};
struct txn_checked txn_checked_begin(struct home *h, const struct txn *t,
				     const char *where);
void txn_checked_end(struct txn_checked *c);
#define TXN_CHECKED(h, t)                          \
	struct txn_checked checked __attribute__(( \
		cleanup(txn_checked_end), unused)) = txn_checked_begin(h, t, __func__)
#else
#define TXN_CHECKED(h, t) ((void)0)
#endif

#endif
