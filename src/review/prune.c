/* SPDX-License-Identifier: Apache-2.0 */
#include "review/prune.h"

#include "call/call.h"
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

static const struct verb_states states = {
	.in = IN(TXN_GONE),
	.refusals = { { ~IN(TXN_GONE), ", only what was rolled back is pruned",
			"stet rollback @" } },
};

static int op_prune(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct prune_req *rq = req;
	struct prune_res *res = result;

	res->dry_run = rq->dry_run;
	return txn_prune(c->h, c->t.rec.id, rq->dry_run, &res->done, e);
}

#define RES(field) offsetof(struct prune_res, field)

static const struct field prune_fields[] = {
	{ "dry_run", FIELD_BOOL, RES(dry_run), "nothing was deleted" },
	{ "transactions", FIELD_UINT64, RES(done.transactions), "whose data went" },
	{ "orphans", FIELD_UINT64, RES(done.orphans), "leftovers of crashes that went" },
	{ "bytes", FIELD_UINT64, RES(done.bytes), "given back" },
	{ NULL },
};

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
	.request_size = sizeof(struct prune_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN_NAMED,
	.states = &states,
	.effect = EFFECT_STORE,
	.flags = VERB_JSON | VERB_QUIET,
	.run = op_prune,
	.result_size = sizeof(struct prune_res),
	.result = prune_fields,
};
