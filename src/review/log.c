/* SPDX-License-Identifier: Apache-2.0 */
#include "review/log.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "call/call.h"
#include "call/json.h"
#include "journal/ckpt_rows.h"
#include "journal/op_rows.h"
#include "review/checkpoint.h"

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
	txn_facts_free(&res->txn);
}

static int timeline(struct verb_call *c, const struct log_req *rq, struct log_res *res,
		    struct err *e)
{
	if (call_find(c, rq->txn, e) < 0)
		return -1;
	res->timeline = true;
	txn_facts_take(&res->txn, &c->t);
	if (journal_ckpt_all(c->h->journal, res->txn.rec.id, &res->points, e) == 0)
		return 0;
	log_free(res);
	return -1;
}

static int op_log(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct log_req *rq = req;

	if (!rq->ops)
		return timeline(c, rq, result, e);
	if ((rq->txn || c->ctx->only) && call_find(c, rq->txn, e) < 0)
		return -1;
	/* Transaction 0: the operations on all of them. */
	if (journal_op_each(c->h->journal, c->t.rec.id, gather, result, e) < 0) {
		log_free(result);
		return -1;
	}
	return 0;
}

static const char *kind(const void *at)
{
	return op_kind_name(((const struct op_record *)at)->kind);
}

static const char *state(const void *at)
{
	return op_state_name(((const struct op_record *)at)->state);
}

static json_t *is_undone(const void *at)
{
	return json_boolean(((const struct op_record *)at)->undone != OP_STANDS);
}

#define OP(field) offsetof(struct op_record, field)

static const struct field op_fields[] = {
	{ "op", FIELD_INT64, OP(id), "number of the operation" },
	{ "kind", FIELD_STRING, 0, "commit, rollback, undo or redo", .word = kind },
	{ "state", FIELD_STRING, 0, "applying, reversing, done or reversed",
	  .word = state },
	{ "txn", FIELD_TXN, OP(txn), "the transaction" },
	{ "of", FIELD_INT64, OP(target), "the operation that an undo or redo is about",
	  FIELD_NULL_0 },
	{ "undone", FIELD_BOOL, 0, "an undo has taken it back", .make = is_undone },
	{ "changes", FIELD_UINT64, OP(changes), "steps" },
	{ "message", FIELD_STRING, OP(message), "the note of a commit", FIELD_CAN_NULL },
	{ "begin", FIELD_TIME, OP(begun_ns), "when it was begun" },
	{ "end", FIELD_TIME, OP(done_ns), "when it was done" },
	{ NULL },
};

static const struct field line_fields[] = {
	{ "txn", FIELD_TXN, 0, "the transaction" },
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, point_fields },
	{ NULL },
};

static json_t *checkpoints(const void *at)
{
	const struct log_res *res = at;
	json_t *a = json_array();

	for (size_t i = res->points.n; i > 0; i--) {
		json_t *o = json_object();

		json_object_set_new(o, "txn", json_txn_ref(res->txn.rec.id));
		schema_add(o, point_fields, &res->points.v[i - 1]);
		json_array_append_new(a, o);
	}
	return a;
}

static const struct field log_fields[] = {
	{ "checkpoints", FIELD_LIST, 0, "newest first", .fields = line_fields,
	  .make = checkpoints },
	{ "operations", FIELD_LIST, offsetof(struct log_res, v),
	  "with --ops; newest first", .fields = op_fields,
	  .count = offsetof(struct log_res, n), .stride = sizeof(struct op_record) },
	{ NULL },
};

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
	.request_size = sizeof(struct log_req),
	.home = HOME_LOOK,
	.target = TARGET_BODY,
	.inside = INSIDE_ASKS,
	.flags = VERB_JSON | VERB_LINES,
	.run = op_log,
	.result_size = sizeof(struct log_res),
	.result = log_fields,
	.free = log_free,
};
