/* SPDX-License-Identifier: Apache-2.0 */
#include "review/rollback.h"

#include <string.h>

#include "base/cleanup.h"
#include "call/call.h"
#include "call/paths.h"
#include "diff/list.h"
#include "inplace/back.h"
#include "inplace/inplace.h"
#include "review/checkpoint.h"
#include "session/housekeep.h"
#include "txn/state.h"

#define AT(field) offsetof(struct rollback_req, field)

static const struct verb_opt opts[] = {
	{ "dry-run", 0, OPT_FLAG, NULL, "say what would be thrown away, and do nothing",
	  AT(dry_run) },
	{ "to", 0, OPT_STRING, "N", "go back to checkpoint N instead", AT(to) },
	{ "kill", 0, OPT_FLAG, NULL,
	  "with --to: end what runs first, but the command itself", AT(kill) },
	{ "ours", 0, OPT_LIST, "PATH",
	  "in place, conflicts there: go back all the same; repeatable", AT(ours), NULL,
	  ARG_PATH },
	{ "theirs", 0, OPT_LIST, "PATH",
	  "in place, conflicts there: leave what is there; repeatable", AT(theirs), NULL,
	  ARG_PATH },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ NULL },
};

static int preview(const struct txn_record *rec, struct change_totals *t, struct err *e)
{
	struct txn_sides s;
	int r;

	r = txn_sides_open(rec, &s, e);
	if (r == 0)
		r = change_count(s.v, s.n, t, e);
	txn_sides_close(&s);
	return r;
}

/* Takes the transaction to a checkpoint; it stays pending. */
static int go_to(struct home *h, struct txn *t, const struct rollback_req *rq,
		 struct rollback_res *res, struct err *e)
{
	struct timeline *c;
	int r;

	if (!rq->dry_run)
		housekeep_stop(h, t->rec.id);
	if (timeline_open(h, t, true, &c, e) < 0) {
		if (!rq->dry_run)
			housekeep_again(h, t);
		return -1;
	}
	r = rq->kill && !rq->dry_run ? timeline_kill(c, e) : 0;
	if (r == 0)
		r = rq->dry_run ? timeline_preview(c, res->to, &res->totals, e)
				: timeline_go(c, res->to, NULL, &res->gone, e);
	if (r == 0 && !rq->dry_run)
		res->totals = res->gone.totals;
	res->paused_us = timeline_paused_us(c);
	timeline_close(c);
	if (!rq->dry_run)
		housekeep_again(h, t);
	return r;
}

static int give_up(struct op_ctx *ctx, struct home *h, struct txn *t,
		   const struct rollback_req *rq, struct rollback_res *res, struct err *e)
{
	struct op_paths ours = { 0 }, theirs = { 0 };
	struct give_up g = { .dry_run = rq->dry_run };
	int r = op_paths_make(ctx, rq->ours, &ours, e);

	if (r == 0)
		r = op_paths_make(ctx, rq->theirs, &theirs, e);
	g.ours = (const char *const *)ours.v;
	g.theirs = (const char *const *)theirs.v;
	if (r == 0 && !rq->dry_run)
		housekeep_stop(h, t->rec.id);
	if (r == 0)
		r = txn_give_up(h, t, &g, e);
	res->conflicts = g.conflicts;
	res->kept = g.kept;
	op_paths_free(&ours);
	op_paths_free(&theirs);
	return r;
}

static int check_options(const struct rollback_req *rq, const struct txn_record *rec,
			 struct err *e)
{
	if (rq->kill && !rq->to) {
		err_set(e, ERR_USAGE,
			"--kill goes with --to: what is thrown away has ended");
		return err_hint(e, "stet rollback t%lld --to N --kill",
				(long long)rec->id);
	}
	if ((!rq->ours && !rq->theirs) || (txn_in_place(rec) && !rq->to))
		return 0;
	return err_set(e, ERR_USAGE,
		       "--ours and --theirs are for a transaction that worked in place");
}

static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct rollback_req *rq = req;
	int64_t seq;

	if (rq->to)
		return point_parse(rq->to, "--to", &seq, e);
	if (!ctx->only)
		return 0;
	err_set(e, ERR_DENIED,
		"a transaction cannot be given up from inside: who started it decides");
	return err_hint(e, "go back to a checkpoint: stet rollback --to N");
}

static const struct verb_states states = {
	.in = IN(TXN_PENDING) | IN(TXN_INTERRUPTED),
	.refusals = { { IN(TXN_RUNNING), NULL, "end its command first, then try again" },
		      { IN(TXN_KEPT), NULL, "stet undo @ takes that back" } },
};

static const struct verb_states *states_of(const void *req)
{
	static const struct verb_states preview = {
		.in = IN(TXN_PENDING) | IN(TXN_INTERRUPTED),
		.refusals = { { ~0u, ": it cannot be rolled back", NULL } },
	};
	const struct rollback_req *rq = req;

	return rq->to ? &states_of_timeline : rq->dry_run ? &preview : &states;
}

static int op_rollback(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct rollback_req *rq = req;
	struct rollback_res *res = result;
	int r = check_options(rq, &c->t.rec, e);

	res->to = -1;
	res->dry_run = rq->dry_run;
	if (r == 0 && rq->to)
		r = point_parse(rq->to, "--to", &res->to, e) < 0
			    ? -1
			    : go_to(c->h, &c->t, rq, res, e);
	else if (r == 0 && rq->dry_run)
		r = preview(&c->t.rec, &res->totals, e);
	if (r == 0 && !rq->to)
		r = give_up(c->ctx, c->h, &c->t, rq, res, e);
	return r;
}

static bool is_counted(const void *at)
{
	const struct rollback_res *res = at;

	return res->dry_run || res->to >= 0;
}

static bool is_in_place(const void *at)
{
	return ((const struct rollback_res *)at)->txn.in_place;
}

static bool is_to_checkpoint(const void *at)
{
	return ((const struct rollback_res *)at)->to >= 0;
}

static json_t *before(const void *at)
{
	const struct rollback_res *res = at;

	return res->dry_run ? json_null() : json_integer(res->gone.before);
}

#define RES(field) offsetof(struct rollback_res, field)

static const struct field explained[] = {
	{ "conflicts", FIELD_NOTES, RES(conflicts), "paths that others changed, too" },
	{ NULL },
};

static const struct field rollback_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "dry_run", FIELD_BOOL, RES(dry_run), "nothing was done" },
	{ "totals", FIELD_OBJECT, RES(totals), "what is thrown away, or changes",
	  .fields = totals_fields, .present = is_counted },
	{ "kept", FIELD_UINT64, RES(kept),
	  "in place: paths that were left as others have changed them",
	  .present = is_in_place },
	{ "to", FIELD_INT64, RES(to), "the checkpoint", .present = is_to_checkpoint },
	{ "paused_us", FIELD_INT64, RES(paused_us), "how long the processes were stopped",
	  .present = is_to_checkpoint },
	{ "before", FIELD_INT64, 0, "checkpoint of the state before", FIELD_CAN_NULL,
	  .present = is_to_checkpoint, .make = before },
	{ "after", FIELD_INT64, RES(gone.after),
	  "checkpoint of the state after; null: nothing differed", FIELD_NULL_0,
	  .present = is_to_checkpoint },
	{ NULL },
};

static void rollback_free(void *result)
{
	struct rollback_res *res = result;

	path_notes_free(&res->conflicts);
	txn_facts_free(&res->txn);
}

const struct verb verb_rollback = {
	.name = "rollback",
	.summary = "throw a transaction away, or go back to a checkpoint",
	.description =
		"Gives a pending or interrupted transaction up. The host's files were never "
		"touched, so there is nothing to wait for. What the transaction held stays "
		"readable, with stet diff, and stet undo brings it back, until stet prune "
		"deletes it.\n"
		"\n"
		"With --to, the transaction becomes what it was at checkpoint N and stays "
		"pending; 0 is its beginning. The state before is kept as a checkpoint: going "
		"back to that takes the rollback back. A transaction that runs goes on running: "
		"its processes are stopped for the moment and find the other state afterwards, "
		"in their open files and directories, too. With --kill all but the command "
		"itself are ended first: servers and jobs that could not live with it.\n"
		"\n"
		"One that worked in place (stet run --backend btrfs) did touch the host's files: "
		"what it changed there is put back. What others made or changed since it ended "
		"stays. Paths that both have changed are listed, nothing is done, and the exit "
		"status is 3. Decide with --ours (back to what was before the run; what is there "
		"now can be seen in the snapshot, until stet prune) or --theirs (what is there "
		"stays). If nobody saw the end of the run, that counts for all it may have "
		"changed.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest open one of the "
		"current directory.\n"
		"\n"
		"  stet rollback t3\n"
		"  stet rollback --to 3",
	.opts = opts,
	.args = args,
	.check = check,
	.request_size = sizeof(struct rollback_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN,
	.states = &states,
	.states_of = states_of,
	.effect = EFFECT_HOST,
	.inside = INSIDE_ASKS,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_rollback,
	.result_size = sizeof(struct rollback_res),
	.result = rollback_fields,
	.explain = explained,
	.free = rollback_free,
};
