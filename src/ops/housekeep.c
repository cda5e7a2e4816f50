/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/housekeep.h"

#include <stdlib.h>
#include <unistd.h>

#include "runner/detach.h"
#include "txn/budget.h"
#include "txn/commit.h"

struct task {
	const char *dir; /* the state directory */
	struct txn *t;
	bool noted; /* the base is there already */
};

enum { FEW = 500 };

/* In the background; a connection of its own, for SQLite's do not survive a fork. */
static void work(void *arg)
{
	struct task *k = arg;
	struct home h;
	struct err e;

	setenv("STET_STATE_DIR", k->dir, 1);
	if (k->t) {
		if (!k->noted)
			txn_note_base(k->t, &e);
		txn_to_disk(&k->t->rec);
		/* Whoever waits for the transaction need not wait for the rest. */
		close(k->t->lock);
	}
	if (home_open(&h, &e) < 0)
		return;
	txn_trim(&h, &e);
	journal_checkpoint(h.journal, &e);
	home_close(&h);
}

void housekeep(struct home *h, struct txn *t, uint64_t changes)
{
	struct task k = { h->dir, t, false };
	struct err e;

	if (t && changes <= FEW)
		k.noted = txn_note_base(t, &e) == 0;
	if (t || journal_checkpoint_due(h->journal))
		detach_run(work, &k, t ? t->lock : -1);
}
