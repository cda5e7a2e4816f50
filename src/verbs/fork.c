/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/fork.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/call.h"
#include "host/inherit.h"
#include "host/known.h"
#include "review/checkpoint.h"
#include "session/housekeep.h"
#include "timeline/pair.h"
#include "txn/begin.h"
#include "txn/end.h"

#define AT(field) offsetof(struct fork_req, field)

static const struct verb_opt opts[] = {
	{ "at", 0, OPT_STRING, "N", "the checkpoint to begin with (default: a new one)",
	  AT(at) },
	{ "name", 'n', OPT_STRING, "NAME", "a name to call the new transaction by",
	  AT(name) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ "COMMAND", ARG_COMMAND, false, true, AT(argv) },
	{ NULL },
};

/* The checkpoint meant: one that there is, or the present state, kept for it. */
static int choose(struct timeline *c, const char *at, int64_t *seq, struct err *e)
{
	const struct ckpt_wish w = { .cause = "fork" };
	const struct ckpt_record *made;

	if (at)
		return point_parse(at, "--at", seq, e) < 0 ? -1
							   : timeline_exists(c, *seq, e);
	if (timeline_take(c, &w, &made, e) < 0)
		return -1;
	*seq = timeline_all(c)->n ? timeline_all(c)->v[timeline_all(c)->n - 1].seq : 0;
	return 0;
}

int fork_open(struct op_ctx *ctx, struct home *h, struct txn *t, const char *at,
	      const char *name, char *const *argv, struct sandbox *sb, int64_t *seq,
	      struct err *e)
{
	struct timeline *c;
	int r;

	if (timeline_open(h, t, !at, &c, e) < 0)
		return -1;
	r = choose(c, at, seq, e);
	if (r == 0)
		r = sandbox_open_like(ctx, &t->rec, name, argv, sb, e);
	if (r == 0) {
		known_inherit(h, &t->rec, &sb->t.rec);
		r = timeline_fill(c, *seq, &sb->v, e);
		if (r < 0) {
			txn_abandon(&sb->t);
			sandbox_close(sb);
		}
	}
	timeline_close(c);
	return r;
}

/* Nothing is run: the new transaction is pending at once. */
static int settle(struct sandbox *sb, struct fork_res *res, struct err *e)
{
	if (sandbox_end(sb, "fork", e) < 0)
		return -1;
	housekeep(sb->h, &sb->t, 0);
	txn_facts_take(&res->run.txn, &sb->t);
	return 0;
}

static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct fork_req *rq = req;

	(void)ctx;
	return rq->name ? run_check_name(rq->name, e) : 0;
}

static const struct verb_states *states_of(const void *req)
{
	return ((const struct fork_req *)req)->at ? &states_with_checkpoints
						  : &states_of_timeline;
}

/* The result tells of the new transaction; c->t is the one that it begins with. */
static int op_fork(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct fork_req *rq = req;
	struct fork_res *res = result;
	struct sandbox sb;
	int r;

	res->from = c->t.rec.id;
	res->ran = rq->argv;
	res->rq.argv = rq->argv;
	res->rq.common.quiet = rq->common.quiet;
	r = fork_open(c->ctx, c->h, &c->t, rq->at, rq->name,
		      rq->argv ? rq->argv : c->t.rec.argv, &sb, &res->at, e);
	txn_close(&c->t);
	if (r < 0)
		return -1;
	r = rq->argv ? run_execute(c->ctx, &sb, &res->rq, &res->run, e)
		     : settle(&sb, res, e);
	sandbox_close(&sb);
	return r;
}

static bool was_run(const void *at)
{
	return ((const struct fork_res *)at)->ran;
}

#define RES(field) offsetof(struct fork_res, field)

static const struct field fork_fields[] = {
	{ "txn", FIELD_OBJECT, RES(run.txn), "the new transaction",
	  .fields = txn_fields },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_fate_fields,
	  .present = was_run },
	{ "from", FIELD_TXN, RES(from), "the transaction that it begins with" },
	{ "at", FIELD_INT64, RES(at), "the checkpoint of that transaction" },
	{ NULL },
};

static int fork_status(const void *req, const void *res)
{
	const struct fork_res *r = res;

	return r->ran ? run_status(req, &r->run) : 0;
}

static void fork_free(void *res)
{
	run_res_free(&((struct fork_res *)res)->run);
}

const struct verb verb_fork = {
	.name = "fork",
	.summary = "begin a new transaction with the state of another",
	.description =
		"Makes a new transaction that begins with what TX was at checkpoint N, or is "
		"now, and runs COMMAND in it. Without a command the new transaction is pending "
		"at once. TX itself stays as it is. Private directories (/tmp) begin empty.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest open one of the "
		"current directory. Exit status and --json are as those of stet run.\n"
		"\n"
		"  stet fork --at 3 -- make test\n"
		"  stet fork t3 --name second-try",
	.opts = opts,
	.args = args,
	.check = check,
	.request_size = sizeof(struct fork_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN,
	.states = &states_of_timeline,
	.states_of = states_of,
	.effect = EFFECT_RUNS,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_fork,
	.result_size = sizeof(struct fork_res),
	.result = fork_fields,
	.status = fork_status,
	.free = fork_free,
};
