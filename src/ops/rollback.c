/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/rollback.h"

#include <string.h>

#include "base/cleanup.h"
#include "ops/json.h"

#define AT(field) offsetof(struct rollback_req, field)

static const struct verb_opt opts[] = {
	{ "dry-run", 0, OPT_FLAG, NULL, "say what would be thrown away, and do nothing",
	  AT(dry_run) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ NULL },
};

static int preview(const struct txn_record *rec, struct change_totals *t, struct err *e)
{
	AUTO_FREE struct change_layer *layers = NULL;
	enum txn_look look = txn_look(rec);
	size_t n;

	if (look != TXN_PENDING && look != TXN_INTERRUPTED)
		return err_set(e, ERR_STATE, "t%lld is %s: it cannot be rolled back",
			       (long long)rec->id, txn_look_name(look));
	layers = txn_layers(rec, &n);
	return change_count(layers, n, t, e);
}

int op_rollback(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct rollback_req *rq = req;
	struct rollback_res *res = result;
	struct txn t = { .lock = -1 };
	struct home *h;
	int r;

	if (op_ctx_look(ctx, &h, e) < 0 || op_ctx_txn(ctx, rq->txn, &t, e) < 0)
		return -1;
	res->dry_run = rq->dry_run;
	r = rq->dry_run ? preview(&t.rec, &res->totals, e) : txn_rollback(h, &t, e);
	if (r == 0) {
		res->rec = t.rec;
		memset(&t.rec, 0, sizeof(t.rec));
	}
	txn_close(&t);
	return r;
}

static json_t *rollback_json(const void *result)
{
	const struct rollback_res *res = result;
	json_t *o = json_result();

	json_object_set_new(o, "txn", json_txn(&res->rec));
	json_object_set_new(o, "dry_run", json_boolean(res->dry_run));
	if (res->dry_run)
		json_object_set_new(o, "totals", json_totals(&res->totals));
	return o;
}

static void rollback_free(void *res)
{
	txn_record_free(&((struct rollback_res *)res)->rec);
}

const struct verb verb_rollback = {
	.name = "rollback",
	.summary = "throw a transaction away",
	.description =
		"Gives a pending or interrupted transaction up. The host's files were never "
		"touched, so there is nothing to wait for. What the transaction held stays "
		"readable, with stet diff, and stet undo brings it back, until stet prune "
		"deletes it.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest one of the "
		"current directory.\n"
		"\n"
		"  stet rollback t3",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON,
	.request_size = sizeof(struct rollback_req),
	.result_size = sizeof(struct rollback_res),
	.run = op_rollback,
	.json = rollback_json,
	.free = rollback_free,
};
