/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "txn/draft.h"
#include "txn/operate.h"
#include "txn/parts.h"

struct pick {
	bool redo;
	struct op_record found;
	bool have;
};

/* Newest first: the first that is not undone; for redo, the one undone last. */
static int pick_op(void *arg, struct op_record *r, struct err *e)
{
	struct pick *p = arg;

	(void)e;
	if (r->state != OP_DONE)
		return 0;
	if (!p->redo && (r->kind == OP_COMMIT || r->kind == OP_ROLLBACK) && !r->undone) {
		p->found = *r;
		*r = (struct op_record){ 0 };
		p->have = true;
		return 1;
	}
	if (p->redo && (r->kind == OP_COMMIT || r->kind == OP_ROLLBACK)) {
		/* Undone newest first, so the oldest in the undone run was undone last. */
		if (r->undone != 1)
			return 1;
		op_record_free(&p->found);
		p->found = *r;
		*r = (struct op_record){ 0 };
		p->have = true;
	}
	return 0;
}

static int find_op(struct home *h, const struct txn *t, int64_t id, bool redo,
		   struct op_record *out, struct err *e)
{
	struct pick p = { .redo = redo };

	if (id > 0)
		return journal_op_get(h->journal, id, out, e);
	if (journal_op_each(h->journal, t->rec.id, pick_op, &p, e) < 0)
		return -1;
	if (!p.have)
		return err_set(e, ERR_STATE, "nothing to %s in t%lld",
			       redo ? "redo" : "undo", (long long)t->rec.id);
	*out = p.found;
	return 0;
}

/* Rollback and its undo touch nothing but the journal. */
static int flip(struct home *h, struct txn *t, const struct op_record *target, bool redo,
		struct commit_result *res, struct err *e)
{
	struct op_record op = { .txn = t->rec.id,
				.kind = redo ? OP_REDO : OP_UNDO,
				.state = OP_DONE,
				.target = target->id,
				.before = t->rec.state,
				.after = redo ? TXN_ROLLED_BACK : TXN_FROZEN,
				.begun_ns = operate_now() };

	op.done_ns = op.begun_ns;
	if (t->rec.state != (redo ? TXN_FROZEN : TXN_ROLLED_BACK))
		return err_set(e, ERR_STATE, "t%lld is %s", (long long)t->rec.id,
			       txn_look_name(txn_look(&t->rec)));
	if (txn_check(&t->rec, e) < 0 ||
	    journal_op_add(h->journal, &op, op.after, JOURNAL_SYNC, e) < 0)
		return -1;
	t->rec.state = op.after;
	res->op = op.id;
	return 0;
}

static int replay(struct home *h, struct txn *t, const struct op_record *target,
		  bool redo, const struct commit_wish *w, struct commit_result *res,
		  struct err *e)
{
	AUTO_CLOSE int guard = operate_guard(h, true, e);
	struct operation o;
	int r;

	if (guard < 0 || operate_open(t, false, &o, e) < 0)
		return -1;
	o.op = (struct op_record){ .txn = t->rec.id,
				   .kind = redo ? OP_REDO : OP_UNDO,
				   .state = OP_APPLYING,
				   .target = target->id,
				   .plan = xstrdup(target->plan),
				   .changes = target->changes,
				   .before = t->rec.state,
				   .after = redo ? target->after : TXN_FROZEN,
				   .begun_ns = operate_now() };
	o.progress = w->progress;
	o.progress_arg = w->progress_arg;
	res->changes = target->changes;
	r = plan_open(o.dir, target->plan, &o.plan, e);
	if (r == 0 && redo)
		r = operate_sync_staged(&o, e);
	if (r == 0) {
		r = journal_op_add(h->journal, &o.op, redo ? TXN_COMMITTING : TXN_UNDOING,
				   JOURNAL_SYNC, e);
		if (r == 0)
			t->rec.state = redo ? TXN_COMMITTING : TXN_UNDOING;
	}
	if (r == 0)
		r = operate(h, t, &o, e);
	if (r == 0)
		res->op = o.op.id;
	else if (e->kind == ERR_CONFLICT && o.where[0])
		path_notes_add(&res->conflicts, o.where, e->msg);
	operate_close(&o);
	return r;
}

int txn_undo(struct home *h, struct txn *t, int64_t op, const struct commit_wish *w,
	     struct commit_result *res, struct err *e)
{
	struct op_record target = { 0 };
	int r;

	*res = (struct commit_result){ 0 };
	if (txn_own(t, e) < 0 || find_op(h, t, op, false, &target, e) < 0)
		return -1;
	if (target.undone || target.state != OP_DONE)
		r = err_set(e, ERR_STATE, "operation %lld is undone already",
			    (long long)target.id);
	else if (target.kind == OP_ROLLBACK)
		r = flip(h, t, &target, false, res, e);
	else
		r = replay(h, t, &target, false, w, res, e);
	op_record_free(&target);
	return r;
}

int txn_redo(struct home *h, struct txn *t, const struct commit_wish *w,
	     struct commit_result *res, struct err *e)
{
	struct op_record target = { 0 };
	int r;

	*res = (struct commit_result){ 0 };
	if (txn_own(t, e) < 0 || find_op(h, t, 0, true, &target, e) < 0)
		return -1;
	r = target.kind == OP_ROLLBACK ? flip(h, t, &target, true, res, e)
				       : replay(h, t, &target, true, w, res, e);
	op_record_free(&target);
	return r;
}
