/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/forget.h"

#include "session/json.h"
#include "txn/end.h"

#define AT(field) offsetof(struct forget_req, field)

static const struct verb_opt opts[] = {
	{ "keep-last", 0, OPT_COUNT, "N", "keep the newest N", AT(keep_last) },
	{ "keep-within", 0, OPT_DURATION, "TIME",
	  "keep those that ended within TIME (36h, 30d)", AT(keep_within) },
	{ "max-size", 0, OPT_SIZE, "SIZE",
	  "then let the oldest go until the rest fits (500M, 10G)", AT(max_size) },
	{ "dry-run", 0, OPT_FLAG, NULL, "say what would be deleted, and do nothing",
	  AT(dry_run) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, true, AT(txns) },
	{ NULL },
};

static int forget_these(struct op_ctx *ctx, struct home *h, const struct forget_req *rq,
			struct budget_result *done, struct err *e)
{
	size_t i;

	for (i = 0; rq->txns[i]; i++) {
		struct txn t = { .lock = -1 };
		uint64_t bytes = 0;
		int r;

		if (op_ctx_txn(ctx, rq->txns[i], &t, e) < 0)
			return -1;
		r = txn_forget_one(h, &t, rq->dry_run, &bytes, e);
		txn_close(&t);
		if (r < 0)
			return -1;
		done->transactions++;
		done->bytes += bytes;
	}
	done->held = txn_held(h);
	return 0;
}

int op_forget(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct forget_req *rq = req;
	struct forget_res *res = result;
	struct budget b = { .keep_last = rq->keep_last,
			    .keep_within_ms = rq->keep_within,
			    .max_bytes = rq->max_size };
	bool limits = b.keep_last || b.keep_within_ms || b.max_bytes;
	struct home *h;

	res->dry_run = rq->dry_run;
	if (rq->txns && limits) {
		err_set(e, ERR_USAGE, "forget: either transactions or limits, not both");
		return err_hint(e, "see: stet help forget");
	}
	if (op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (rq->txns)
		return forget_these(ctx, h, rq, &res->done, e);
	if (!limits)
		b = budget_default(h);
	b.dry_run = rq->dry_run;
	return txn_forget(h, &b, &res->done, e);
}

static json_t *forget_json(const void *result)
{
	const struct forget_res *res = result;
	json_t *o = json_result();

	json_object_set_new(o, "dry_run", json_boolean(res->dry_run));
	json_object_set_new(o, "transactions",
			    json_integer((json_int_t)res->done.transactions));
	json_object_set_new(o, "bytes", json_integer((json_int_t)res->done.bytes));
	json_object_set_new(o, "held", json_integer((json_int_t)res->done.held));
	return o;
}

const struct verb verb_forget = {
	.name = "forget",
	.summary = "let old history go",
	.description =
		"Deletes the data of committed and rolled-back transactions that are too old or "
		"too many to be kept for stet undo. A transaction stays if it is among the last "
		"N or ended within TIME; of those that stay, the oldest go until SIZE is "
		"enough. Pending transactions are never touched. With TXs, just these, however "
		"new they are.\n"
		"\n"
		"Without limits, the default budget applies: 30 days, and a tenth of the "
		"filesystem, in which the newest commit stays even if it is larger. stet applies "
		"that from time to time by itself.\n"
		"\n"
		"  stet forget --keep-last 20 --keep-within 7d\n"
		"  stet forget --max-size 10G --dry-run",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON | VERB_QUIET,
	.request_size = sizeof(struct forget_req),
	.result_size = sizeof(struct forget_res),
	.run = op_forget,
	.json = forget_json,
};
