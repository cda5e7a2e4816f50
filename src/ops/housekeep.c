/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/housekeep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/detach.h"
#include "txn/budget.h"
#include "txn/commit.h"

enum { FEW = 500 };

void housekeep(struct home *h, struct txn *t, uint64_t changes)
{
	char name[] = "stet", option[] = HOUSEKEEP_OPTION, id[24], lock[16],
	     noted[2] = "0";
	char *argv[] = { name, option, h->dir, id, lock, noted, NULL };
	struct err e;

	if (!t && !journal_checkpoint_due(h->journal))
		return;
	if (t && changes <= FEW && txn_note_base(t, &e) == 0)
		noted[0] = '1';
	snprintf(id, sizeof(id), "%lld", t ? (long long)t->rec.id : 0);
	snprintf(lock, sizeof(lock), "%d", t ? t->lock : -1);
	detach_exec(argv, t ? t->lock : -1);
}

static void look_after(struct home *h, int64_t id, bool noted)
{
	struct txn t = { .lock = -1 };
	struct err e;

	if (journal_txn_get(h->journal, id, &t.rec, &e) < 0)
		return;
	if (!noted)
		txn_note_base(&t, &e);
	txn_to_disk(&t.rec);
	txn_close(&t);
}

int housekeep_main(int argc, char **argv)
{
	struct home h;
	struct err e;
	int lock;

	if (argc != 6)
		return ERR_USAGE;
	setenv("STET_STATE_DIR", argv[2], 1);
	if (home_open(&h, &e) < 0)
		return e.kind;
	if (atoll(argv[3]) > 0)
		look_after(&h, atoll(argv[3]), strcmp(argv[5], "1") == 0);
	/* Whoever waits for the transaction need not wait for the rest. */
	lock = atoi(argv[4]);
	if (lock > STDERR_FILENO)
		close(lock);
	txn_clear(&h);
	txn_trim(&h, &e);
	journal_checkpoint(h.journal, &e);
	home_close(&h);
	return 0;
}
