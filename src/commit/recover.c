/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "commit/operate.h"
#include "commit/recover.h"
#include "journal/ckpt_rows.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "timeline/timeline.h"
#include "txn/end.h"
#include "txn/parts.h"

static int pick_unfinished(void *arg, struct op_record *r, struct err *e)
{
	struct op_record *found = arg;

	(void)e;
	if (r->state != OP_APPLYING && r->state != OP_REVERSING)
		return 0;
	*found = *r;
	*r = (struct op_record){ 0 };
	return 1;
}

struct sharing {
	const struct op_record *op;
	bool found;
};

static int look_for_list(void *arg, struct op_record *r, struct err *e)
{
	struct sharing *s = arg;

	(void)e;
	s->found = r->id < s->op->id && r->plan && strcmp(r->plan, s->op->plan) == 0;
	return s->found;
}

/* Was the list of @o made for it? An undo mostly goes through that of the commit. */
static int find_owner(struct home *h, struct operation *o, struct err *e)
{
	struct sharing s = { .op = &o->op };

	if (journal_op_each(h->journal, o->op.txn, look_for_list, &s, e) < 0)
		return -1;
	o->own = !s.found;
	return 0;
}

static int finish(struct home *h, struct txn *t, struct err *e)
{
	struct operation o;
	struct err why = { 0 };
	int r;

	if (operate_open(t, false, &o, e) < 0)
		return -1;
	r = journal_op_each(h->journal, t->rec.id, pick_unfinished, &o.op, e);
	if (r == 0 && !o.op.plan)
		r = err_set(e, ERR_CORRUPT, "t%lld is %s, but no operation says why",
			    (long long)t->rec.id, txn_state_name(t->rec.state));
	if (r == 0)
		r = plan_open(o.dir, o.op.plan, &o.plan, e);
	if (r == 0)
		r = find_owner(h, &o, e);
	if (r == 0)
		r = operate_reach(&o, e);
	/* How much there was to write is not known any more: the whole filesystem, then. */
	o.objects = UINT64_MAX;
	if (r == 0 && operate(h, t, &o, &why) < 0 && o.op.state != OP_REVERSED) {
		*e = why;
		r = -1;
	}
	operate_close(&o);
	return r;
}

static int recover(struct home *h, unsigned *n, struct err *e)
{
	int64_t id = 0;
	int r = 0;

	*n = 0;
	while (r == 0) {
		struct txn t = { .lock = -1 };
		struct err busy;

		if (journal_txn_unfinished(h->journal, id, &id, e) < 0)
			return -1;
		if (!id)
			break;
		if (journal_txn_get(h->journal, id, &t.rec, e) < 0)
			return -1;
		if (txn_own(&t, &busy) == 0) {
			r = finish(h, &t, e);
			(*n)++;
		}
		txn_close(&t);
	}
	return r;
}

/*
 * Atomic transactions whose process was killed before its decision: it is made here. A running
 * one holds its lock and is not waited for.
 */
static int decide(struct home *h, unsigned *n, struct err *e)
{
	int64_t id = 0;
	int r = 0;

	while (r == 0) {
		struct txn t = { .lock = -1 };

		if (journal_txn_undecided(h->journal, id, &id, e) < 0)
			return -1;
		if (!id)
			break;
		if (journal_txn_get(h->journal, id, &t.rec, e) < 0)
			return -1;
		t.lock = lock_take(t.rec.dir, false);
		if (t.lock >= 0) {
			/* The state may have changed until we had the lock. */
			txn_record_free(&t.rec);
			r = journal_txn_get(h->journal, id, &t.rec, e);
			if (r == 0 && t.rec.atomic) {
				r = txn_rollback(h, &t, e);
				(*n)++;
			}
		}
		txn_close(&t);
	}
	return r;
}

/* Transactions whose layers were being changed to another checkpoint go back. */
static int recover_changes(struct home *h, unsigned *n, struct err *e)
{
	int64_t id = 0, back_to;
	int r = 0;

	while (r == 0) {
		struct txn t = { .lock = -1 };

		if (journal_changing_next(h->journal, id, &id, &back_to, e) < 0)
			return -1;
		if (!id)
			break;
		if (journal_txn_get(h->journal, id, &t.rec, e) < 0)
			return -1;
		/* A process that is at work on it holds the lock. */
		t.lock = lock_take(t.rec.dir, false);
		if (t.lock >= 0 || t.lock == -ENOENT) {
			r = timeline_recover(h, &t, back_to, e);
			(*n)++;
		}
		txn_close(&t);
	}
	return r;
}

int txn_recover(struct home *h, unsigned *n, struct err *e)
{
	AUTO_CLOSE int guard = operate_guard(h, true, e);

	if (guard < 0 || recover(h, n, e) < 0 || recover_changes(h, n, e) < 0)
		return -1;
	return decide(h, n, e);
}

int txn_recover_if_needed(struct home *h, struct err *e)
{
	AUTO_CLOSE int guard = -1;
	int64_t id, back_to;
	unsigned n = 0;

	if (journal_changing_next(h->journal, 0, &id, &back_to, e) < 0 ||
	    (id && recover_changes(h, &n, e) < 0) ||
	    journal_txn_unfinished(h->journal, 0, &id, e) < 0)
		return -1;
	if (!id)
		return decide(h, &n, e);
	/* The process that holds it is at work, and alive. */
	guard = operate_guard(h, false, e);
	if (guard < 0)
		return e->kind == ERR_STATE ? 0 : -1;
	return recover(h, &n, e) < 0 ? -1 : decide(h, &n, e);
}
