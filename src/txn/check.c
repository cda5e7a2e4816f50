/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "plan/plan.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/marks.h"

int txn_check_data(const struct txn_record *r, struct err *e)
{
	struct stat st;

	if (r->state == TXN_PRUNED)
		return 0;
	if (!r->dir || lstat(r->dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, ERR_CORRUPT, "t%lld has lost its directory %s",
			       (long long)r->id, r->dir ? r->dir : "");
	for (size_t i = 0, k = 0; i < r->nlayers; i++) {
		const struct layer_record *l = &r->layers[i];
		AUTO_FREE char *up = xasprintf("%s%s", l->dir,
					       l->kind == LAYER_OVERLAY ? "/up" : "");

		k += l->kind == LAYER_OVERLAY;
		if (lstat(up, &st) == 0 && S_ISDIR(st.st_mode))
			continue;
		if (l->kind != LAYER_OVERLAY || !layer_away(up) ||
		    (!l->idle && !untouched_was(r, k - 1)))
			return layer_lost(r, l->host, up, e);
	}
	return 0;
}

struct look {
	const struct txn_record *rec;
	int dir;
	unsigned going; /* operations that have not come to their end */
};

static int broken(const struct txn_record *r, int number, const char *what, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "t%lld breaks invariant %d: %s", (long long)r->id,
		       number, what);
}

static bool fits(enum op_kind kind, enum txn_state state)
{
	return kind == OP_UNDO ? state == TXN_UNDOING
			       : kind != OP_ROLLBACK && state == TXN_COMMITTING;
}

/* Invariants 5 and 6, for one operation. */
static int look_at_op(void *arg, struct op_record *op, struct err *e)
{
	struct look *l = arg;
	bool going = op->state == OP_APPLYING || op->state == OP_REVERSING;
	struct plan *p;

	if (going) {
		l->going++;
		if (!fits(op->kind, l->rec->state))
			return broken(l->rec, 5, "an operation is not at its end", e);
	}
	if (!op->plan || !(going || (op->kind == OP_COMMIT && op->state == OP_DONE)))
		return 0;
	if (plan_open(l->dir, op->plan, &p, e) < 0)
		return err_wrap(e, "invariant %d", going ? 5 : 6);
	plan_close(p);
	return 0;
}

/* By the row: another process may have moved the transaction before the lock was taken. */
static int look_at_row(struct home *h, const struct txn_record *row, int dir,
		       struct err *e)
{
	bool moving = row->state == TXN_COMMITTING || row->state == TXN_UNDOING;
	struct look l = { .rec = row, .dir = dir };

	if (journal_op_each(h->journal, row->id, look_at_op, &l, e) < 0)
		return -1;
	if (l.going != moving)
		return broken(row, 5, "operations under way do not fit its state", e);
	return 0;
}

int txn_check(struct home *h, const struct txn *t, struct err *e)
{
	AUTO_CLOSE int dir = -1;
	struct txn_record row;
	int r;

	if (journal_txn_get(h->journal, t->rec.id, &row, e) < 0)
		return -1;
	dir = open(t->rec.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (row.state == TXN_PRUNED)
		r = 0;
	else if (t->lock >= 0 && !lock_is_held(t->rec.dir))
		r = broken(&row, 2, "its directory is not locked", e);
	else
		r = txn_check_data(&t->rec, e) < 0 ? -1 : look_at_row(h, &row, dir, e);
	txn_record_free(&row);
	return r;
}

#ifdef STET_FAULTS
/* A test without descriptors or memory for the look itself is not about invariants. */
static void assert_all(const struct txn_checked *c, const char *when)
{
	bool spared = FAULT_SPARE(true);
	struct err e = { 0 };

	if (c->h->journal && c->t->lock >= 0 && c->t->rec.id &&
	    txn_check(c->h, c->t, &e) < 0 && e.kind == ERR_CORRUPT) {
		dprintf(STDERR_FILENO, "%s of %s: %s\n", when, c->where, e.msg);
		abort();
	}
	FAULT_SPARE(spared);
}

struct txn_checked txn_checked_begin(struct home *h, const struct txn *t,
				     const char *where)
{
	struct txn_checked c = { h, t, where };

	assert_all(&c, "at the beginning");
	return c;
}

void txn_checked_end(struct txn_checked *c)
{
	assert_all(c, "at the end");
}
#endif
