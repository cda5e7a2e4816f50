/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/log.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "journal/ckpt_rows.h"
#include "journal/op_rows.h"
#include "session/json.h"
#include "txn/end.h"
#include "verbs/checkpoint.h"

#define AT(field) offsetof(struct log_req, field)

static const struct verb_opt opts[] = {
	{ "ops", 0, OPT_FLAG, NULL,
	  "list what was committed, rolled back, undone and redone", AT(ops) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ NULL },
};

static int gather(void *arg, struct op_record *r, struct err *e)
{
	struct log_res *res = arg;

	(void)e;
	if (res->n == res->cap) {
		res->cap = res->cap ? 2 * res->cap : 16;
		res->v = xrealloc(res->v, res->cap * sizeof(*res->v));
	}
	/* Moved, not copied: an empty record is left for the caller to free. */
	res->v[res->n++] = *r;
	memset(r, 0, sizeof(*r));
	return 0;
}

static void log_free(void *result)
{
	struct log_res *res = result;
	size_t i;

	for (i = 0; i < res->n; i++)
		op_record_free(&res->v[i]);
	free(res->v);
	ckpt_records_free(&res->points);
	txn_record_free(&res->rec);
}

static int timeline(struct op_ctx *ctx, const struct log_req *rq, struct log_res *res,
		    struct err *e)
{
	struct txn t = { .lock = -1 };
	struct home *h;

	if (op_ctx_look(ctx, &h, e) < 0 || op_ctx_txn(ctx, rq->txn, &t, e) < 0)
		return -1;
	res->timeline = true;
	res->rec = t.rec;
	memset(&t.rec, 0, sizeof(t.rec));
	txn_close(&t);
	if (journal_ckpt_all(h->journal, res->rec.id, &res->points, e) == 0)
		return 0;
	log_free(res);
	return -1;
}

int op_log(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct log_req *rq = req;
	struct txn t = { .lock = -1 };
	struct home *h;
	int64_t id = 0;

	if (!rq->ops)
		return timeline(ctx, rq, result, e);
	if (op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (rq->txn || ctx->only) {
		if (op_ctx_txn(ctx, rq->txn, &t, e) < 0)
			return -1;
		id = t.rec.id;
		txn_close(&t);
	}
	if (journal_op_each(h->journal, id, gather, result, e) < 0) {
		log_free(result);
		return -1;
	}
	return 0;
}

static json_t *op_json(const struct op_record *r)
{
	json_t *o = json_result();

	json_object_set_new(o, "op", json_integer(r->id));
	json_object_set_new(o, "kind", json_string(op_kind_name(r->kind)));
	json_object_set_new(o, "state", json_string(op_state_name(r->state)));
	json_object_set_new(o, "txn", json_txn_ref(r->txn));
	json_object_set_new(o, "of", r->target ? json_integer(r->target) : json_null());
	json_object_set_new(o, "undone", json_boolean(r->undone != OP_STANDS));
	json_object_set_new(o, "changes", json_integer((json_int_t)r->changes));
	json_set_str(o, "message", r->message);
	json_set_time(o, "begin", r->begun_ns);
	json_set_time(o, "end", r->done_ns);
	return o;
}

static json_t *log_json(const void *result)
{
	const struct log_res *res = result;
	json_t *a = json_array(), *o;
	size_t i;

	for (i = res->points.n; i > 0; i--) {
		o = json_result();
		json_object_set_new(o, "txn", json_txn_ref(res->rec.id));
		json_object_update_new(o, point_json(&res->points.v[i - 1]));
		json_array_append_new(a, o);
	}
	for (i = 0; i < res->n; i++)
		json_array_append_new(a, op_json(&res->v[i]));
	return a;
}

const struct verb verb_log = {
	.name = "log",
	.summary = "list the checkpoints of a transaction, or operations",
	.description =
		"Lists the checkpoints of a transaction, newest first: number, time, why it was "
		"made, what was added, changed and deleted since the one before, and the command "
		"or note that belongs to it: what was about to run, and had changed nothing yet. "
		"TX is the number or name of a transaction; without it, the newest open one of "
		"the current directory.\n"
		"\n"
		"With --ops, the operations on transactions: what stet undo takes back, one by "
		"one; with TX, those on that one. Each has a number; an undo or redo names the "
		"operation that it is about.\n"
		"\n"
		"With --json, one object a line.\n"
		"\n"
		"  stet log t3\n"
		"  stet log --ops",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON | VERB_LINES | VERB_INSIDE,
	.request_size = sizeof(struct log_req),
	.result_size = sizeof(struct log_res),
	.run = op_log,
	.json = log_json,
	.free = log_free,
};
