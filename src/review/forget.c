/* SPDX-License-Identifier: Apache-2.0 */
#include "review/forget.h"

#include "call/call.h"
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

static const struct verb_states states = {
	.in = IN(TXN_KEPT) | IN(TXN_GONE),
	.refusals = { { ~(IN(TXN_KEPT) | IN(TXN_GONE)),
			"; only committed and rolled-back ones are forgotten",
			"commit it or roll it back first" } },
};

static int forget_these(struct verb_call *c, const struct forget_req *rq,
			struct budget_result *done, struct err *e)
{
	for (size_t i = 0; rq->txns[i]; i++) {
		uint64_t bytes = 0;
		int r = call_find(c, rq->txns[i], e);

		if (r == 0)
			r = txn_forget_one(c->h, &c->t, rq->dry_run, &bytes, e);
		txn_close(&c->t);
		if (r < 0)
			return -1;
		done->transactions++;
		done->bytes += bytes;
	}
	done->held = txn_held(c->h);
	return 0;
}

static bool has_limits(const struct forget_req *rq)
{
	return rq->keep_last || rq->keep_within || rq->max_size;
}

static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct forget_req *rq = req;

	(void)ctx;
	if (!rq->txns || !has_limits(rq))
		return 0;
	err_set(e, ERR_USAGE, "forget: either transactions or limits, not both");
	return err_hint(e, "see: stet help forget");
}

static int op_forget(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct forget_req *rq = req;
	struct forget_res *res = result;
	struct budget b = { .keep_last = rq->keep_last,
			    .keep_within_ms = rq->keep_within,
			    .max_bytes = rq->max_size };

	res->dry_run = rq->dry_run;
	if (rq->txns)
		return forget_these(c, rq, &res->done, e);
	if (!has_limits(rq))
		b = budget_default(c->h);
	b.dry_run = rq->dry_run;
	return txn_forget(c->h, &b, &res->done, e);
}

#define RES(field) offsetof(struct forget_res, field)

static const struct field forget_fields[] = {
	{ "dry_run", FIELD_BOOL, RES(dry_run), "nothing was deleted" },
	{ "transactions", FIELD_UINT64, RES(done.transactions), "whose data went" },
	{ "bytes", FIELD_UINT64, RES(done.bytes), "given back" },
	{ "held", FIELD_UINT64, RES(done.held), "bytes that history still holds" },
	{ NULL },
};

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
	.check = check,
	.request_size = sizeof(struct forget_req),
	.home = HOME_LOOK,
	.target = TARGET_BODY,
	.states = &states,
	.effect = EFFECT_STORE,
	.flags = VERB_JSON | VERB_QUIET,
	.run = op_forget,
	.result_size = sizeof(struct forget_res),
	.result = forget_fields,
};
