/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "commit/history.h"
#include "commit/operate.h"
#include "commit/verify.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "plan/apply.h"
#include "plan/checks.h"
#include "txn/check.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/parts.h"
#include "txn/prune.h"

struct check {
	struct home *h;
	check_fn *fn;
	void *arg;
	unsigned *checked;
	/* while one transaction is looked at */
	const struct txn_record *rec;
	struct operation *o;
};

static void complain(struct check *c, const char *what)
{
	AUTO_BUF struct buf b = BUF_INIT;

	if (c->rec)
		buf_addf(&b, "t%lld: ", (long long)c->rec->id);
	buf_adds(&b, what);
	c->fn(c->arg, buf_str(&b));
}

/* Somebody may be at it, or it may have ended since we read that it had not. */
static bool did_not_end(const struct check *c, const struct op_record *op)
{
	struct op_record now = { 0 };
	struct err e;
	bool still;

	if ((op->state != OP_APPLYING && op->state != OP_REVERSING) ||
	    lock_is_held(c->rec->dir))
		return false;
	still = journal_op_get(c->h->journal, op->id, &now, &e) < 0 ||
		now.state == op->state;
	op_record_free(&now);
	return still;
}

/* Everything that undo will need must be there; unless somebody is at it. */
static int check_step(void *arg, const struct plan_rec *r, struct err *e)
{
	struct check *c = arg;
	AUTO_BUF struct buf b = BUF_INIT;

	if (apply_is_kept(c->o->apply, r, e) || lock_is_held(c->rec->dir))
		return 0;
	buf_adds(&b, "what it replaced is lost: ");
	text_quote(&b, r->rel, strlen(r->rel));
	complain(c, buf_str(&b));
	return 0;
}

static int check_op(void *arg, struct op_record *op, struct err *e)
{
	struct check *c = arg;
	struct err why;
	struct plan *p;

	(void)e;
	if (did_not_end(c, op))
		complain(c, "an operation did not end; stet recover goes on with it");
	if (op->kind != OP_COMMIT || !op->plan || op->state != OP_DONE)
		return 0;
	if (plan_open(c->o->dir, op->plan, &p, &why) < 0) {
		complain(c, why.msg);
		return 0;
	}
	plan_close(p);
	return 0;
}

/* Somebody has deleted what it was about: that is his to do. */
static bool is_tree_gone(const struct txn_record *r)
{
	for (size_t i = 0; i < r->nlayers; i++)
		if (r->layers[i].kind == LAYER_OVERLAY &&
		    access(r->layers[i].host, F_OK) < 0 && errno == ENOENT)
			return true;
	return false;
}

static int check_txn(void *arg, struct txn_record *r, struct err *e)
{
	struct check *c = arg;
	struct txn t = { .rec = *r, .lock = -1 };
	struct operation o;
	struct err why;

	if (r->state == TXN_PRUNED)
		return 0;
	(*c->checked)++;
	c->rec = r;
	c->o = &o;
	if (txn_check_data(r, &why) < 0) {
		complain(c, why.msg);
	} else if (operate_open(&t, false, &o, &why) < 0) {
		if (why.sys != ENOENT || !is_tree_gone(r))
			complain(c, why.msg);
	} else {
		journal_op_each(c->h->journal, r->id, check_op, c, e);
		txn_each_step(c->h, r, check_step, c, &why);
		operate_close(&o);
	}
	c->rec = NULL;
	return 0;
}

int txn_verify(struct home *h, check_fn *fn, void *arg, unsigned *checked, struct err *e)
{
	struct check c = { .h = h, .fn = fn, .arg = arg, .checked = checked };
	struct prune_result pr;
	char line[160];

	*checked = 0;
	if (journal_verify(h->journal, fn, arg, e) < 0 ||
	    journal_txn_each(h->journal, JOURNAL_ALL, check_txn, &c, e) < 0 ||
	    txn_orphans(h, &pr, e) < 0)
		return -1;
	if (pr.orphans) {
		snprintf(line, sizeof(line),
			 "%llu director%s in the stores belong%s to no transaction; stet "
			 "prune deletes %s",
			 (unsigned long long)pr.orphans, pr.orphans == 1 ? "y" : "ies",
			 pr.orphans == 1 ? "s" : "", pr.orphans == 1 ? "it" : "them");
		fn(arg, line);
	}
	return 0;
}
