/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CALL_FACTS_H
#define STET_CALL_FACTS_H

#include "txn/txn.h"

/*
 * A transaction as the results of verbs tell of it. The verb fills everything in, so that a front
 * end need not ask anything (txn_look() takes a lock).
 */
struct txn_facts {
	struct txn_record rec;
	enum txn_look look; /* when the verb had done its work */
	const char *state;  /* the name of @look: "pending", "running", … */
	bool in_place; /* it works on a subvolume itself: it has no layers and no checkpoints */
	bool final; /* nothing takes back what was decided about it */
};

/* Fills in all but the record, from the record and the lock of the transaction. */
void txn_facts_look(struct txn_facts *f);

/* Gives the lock of @t up, moves its record to @f, which becomes its owner, and looks. */
void txn_facts_take(struct txn_facts *f, struct txn *t);

void txn_facts_free(struct txn_facts *f); /* the contents */

#endif
