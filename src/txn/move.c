/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/move.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/op_rows.h"

/* clang-format off */
static const struct {
	enum txn_state from, to;
	const char *by; /* the functions that make this move, for the message and the reader */
} moves[] = {
	{ TXN_ACTIVE,      TXN_FROZEN,      "txn_end" },
	{ TXN_ACTIVE,      TXN_PRUNED,      "txn_discard" },
	{ TXN_ACTIVE,      TXN_ROLLED_BACK, "txn_rollback" },
	{ TXN_FROZEN,      TXN_ACTIVE,      "txn_resume" },
	{ TXN_FROZEN,      TXN_COMMITTING,  "txn_commit, txn_redo" },
	{ TXN_FROZEN,      TXN_UNDOING,     "txn_undo of a part" },
	{ TXN_FROZEN,      TXN_ROLLED_BACK, "txn_rollback, txn_redo of a rollback" },
	{ TXN_FROZEN,      TXN_PRUNED,      "txn_discard" },
	{ TXN_COMMITTING,  TXN_COMMITTED,   "operate: done" },
	{ TXN_COMMITTING,  TXN_FROZEN,      "operate: a part is done, or all was taken back" },
	{ TXN_COMMITTED,   TXN_UNDOING,     "txn_undo" },
	{ TXN_COMMITTED,   TXN_COMMITTING,  "txn_redo of a part" },
	{ TXN_COMMITTED,   TXN_PRUNED,      "data_let_go" },
	{ TXN_UNDOING,     TXN_FROZEN,      "operate: done" },
	{ TXN_UNDOING,     TXN_COMMITTED,   "operate: a part is done, or all was put back" },
	{ TXN_UNDOING,     TXN_ROLLED_BACK, "operate: a part is done, or all was put back" },
	{ TXN_COMMITTING,  TXN_ROLLED_BACK, "operate: a part is done, or all was taken back" },
	{ TXN_ROLLED_BACK, TXN_FROZEN,      "txn_undo of a rollback" },
	{ TXN_ROLLED_BACK, TXN_UNDOING,     "txn_undo of a part that was committed before" },
	{ TXN_ROLLED_BACK, TXN_COMMITTING,  "txn_redo of a part that was committed before" },
	{ TXN_ROLLED_BACK, TXN_PRUNED,      "data_let_go" },
};
/* clang-format on */

bool txn_may_move(enum txn_state from, enum txn_state to)
{
	for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
		if (moves[i].from == from && moves[i].to == to)
			return true;
	return false;
}

static int refuse(int64_t id, enum txn_state from, enum txn_state to, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "t%lld cannot go from %s to %s", (long long)id,
		       txn_state_name(from), txn_state_name(to));
}

static void keep_outcome(struct txn_record *r, const struct txn_outcome *o)
{
	r->exit_status = o->exit_status;
	r->end_ns = o->end_ns;
	free(r->reason);
	r->reason = xstrdup(o->reason);
}

int txn_move(struct home *h, struct txn *t, const struct txn_step *s, struct err *e)
{
	const struct txn_outcome *o = s->outcome;
	enum txn_state from = t->rec.state;
	struct journal *j = h->journal;
	int r;

	if (!(s->op && s->to == from) && !txn_may_move(from, s->to))
		return refuse(t->rec.id, from, s->to, e);
	if (s->op && !s->op->id)
		r = journal_op_add(j, s->op, s->to, s->sync, e);
	else if (s->op)
		r = journal_op_move(j, s->op, s->op_to, s->to, s->op_ns, s->sync, e);
	else if (o)
		r = journal_txn_end(j, &(struct txn_move){ t->rec.id, from, false },
				    s->to, o, s->sync, e);
	else
		r = journal_txn_move(j, t->rec.id, from, s->to, s->sync, e);
	if (r < 0)
		return -1;
	t->rec.state = s->to;
	if (o)
		keep_outcome(&t->rec, o);
	return 0;
}

int txn_move_all(struct home *h, struct txn_move *v, size_t n, enum txn_state to,
		 enum journal_sync sync, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!txn_may_move(v[i].from, to))
			return refuse(v[i].id, v[i].from, to, e);
	return journal_txn_move_all(h->journal, v, n, to, sync, e);
}
