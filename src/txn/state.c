/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "txn/check.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/parts.h"
#include "txn/state.h"

/* What may be done to a transaction, by its record. */

const char *txn_in_place(const struct txn_record *r)
{
	for (size_t i = 0; i < r->neffects; i++)
		if (strcmp(r->effects[i].kind, "in-place") == 0)
			return r->effects[i].what;
	return NULL;
}

bool txn_is_final(const struct txn_record *r)
{
	return txn_in_place(r) && (r->state == TXN_ROLLED_BACK || r->state == TXN_PRUNED);
}

int txn_pending(struct home *h, struct txn *t, struct err *e)
{
	if (t->rec.state != TXN_FROZEN && t->rec.state != TXN_ACTIVE) {
		err_set(e, ERR_STATE, "t%lld is %s", (long long)t->rec.id,
			txn_look_name(txn_look(&t->rec)));
		if ((t->rec.state == TXN_ROLLED_BACK || t->rec.state == TXN_COMMITTED) &&
		    !txn_is_final(&t->rec))
			err_hint(e, "stet undo t%lld takes that back",
				 (long long)t->rec.id);
		return -1;
	}
	if (txn_own(t, e) < 0 || txn_check_data(&t->rec, e) < 0)
		return -1;
	/* The one who ran it was killed: what it left is pending like any other. */
	if (t->rec.state == TXN_ACTIVE &&
	    txn_end(h, t, t->rec.exit_status, "interrupted", e) < 0)
		return -1;
	return 0;
}
