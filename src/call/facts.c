/* SPDX-License-Identifier: Apache-2.0 */
#include "call/facts.h"

#include <string.h>

#include "txn/end.h"
#include "txn/find.h"
#include "txn/state.h"

void txn_facts_look(struct txn_facts *f)
{
	f->look = txn_look(&f->rec);
	f->state = txn_look_name(f->look);
	f->in_place = txn_in_place(&f->rec);
	f->final = txn_is_final(&f->rec);
}

void txn_facts_take(struct txn_facts *f, struct txn *t)
{
	f->rec = t->rec;
	memset(&t->rec, 0, sizeof(t->rec));
	/* A lock of our own would make an interrupted transaction look like a running one. */
	txn_close(t);
	txn_facts_look(f);
}

void txn_facts_free(struct txn_facts *f)
{
	txn_record_free(&f->rec);
}
