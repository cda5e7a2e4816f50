/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/prune.h"

#include "session/json.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/prune.h"

#define AT(field) offsetof(struct prune_req, field)

static const struct verb_opt opts[] = {
	{ "dry-run", 0, OPT_FLAG, NULL, "say what would be deleted, and do nothing",
	  AT(dry_run) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ NULL },
};

int op_prune(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct prune_req *rq = req;
	struct prune_res *res = result;
	struct txn t = { .lock = -1 };
	struct home *h;
	int64_t id = 0;
	int r = 0;

	if (op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (rq->txn) {
		if (op_ctx_txn(ctx, rq->txn, &t, e) < 0)
			return -1;
		id = t.rec.id;
		if (t.rec.state != TXN_ROLLED_BACK) {
			r = err_set(e, ERR_STATE,
				    "t%lld is %s, only what was rolled back is pruned",
				    (long long)id, txn_look_name(txn_look(&t.rec)));
			err_hint(e, "stet rollback t%lld", (long long)id);
		}
		txn_close(&t);
	}
	res->dry_run = rq->dry_run;
	return r < 0 ? r : txn_prune(h, id, rq->dry_run, &res->done, e);
}

static json_t *prune_json(const void *result)
{
	const struct prune_res *res = result;
	json_t *o = json_result();

	json_object_set_new(o, "dry_run", json_boolean(res->dry_run));
	json_object_set_new(o, "transactions",
			    json_integer((json_int_t)res->done.transactions));
	json_object_set_new(o, "orphans", json_integer((json_int_t)res->done.orphans));
	json_object_set_new(o, "bytes", json_integer((json_int_t)res->done.bytes));
	return o;
}

const struct verb verb_prune = {
	.name = "prune",
	.summary = "delete the data of transactions that were rolled back",
	.description =
		"Deletes what rolled-back transactions held, and whatever a crash left in the "
		"stores, and gives the space back. Pending transactions are never touched. With "
		"TX only that one.\n"
		"\n"
		"  stet prune --dry-run",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON | VERB_QUIET,
	.request_size = sizeof(struct prune_req),
	.result_size = sizeof(struct prune_res),
	.run = op_prune,
	.json = prune_json,
};
