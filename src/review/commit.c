/* SPDX-License-Identifier: Apache-2.0 */
#include "review/commit.h"

#include <string.h>

#include "base/cleanup.h"
#include "call/call.h"
#include "call/paths.h"
#include "diff/list.h"
#include "inplace/inplace.h"
#include "review/checkpoint.h"
#include "session/diffrule.h"
#include "session/housekeep.h"
#include "session/policy_files.h"
#include "txn/find.h"

#define AT(field) offsetof(struct commit_req, field)

static const struct verb_opt opts[] = {
	{ "message", 'm', OPT_STRING, "TEXT", "a note for stet log", AT(message) },
	{ "ours", 0, OPT_LIST, "PATH",
	  "conflicts there: the transaction wins; repeatable", AT(ours), NULL, ARG_PATH },
	{ "theirs", 0, OPT_LIST, "PATH", "conflicts there: the host wins; repeatable",
	  AT(theirs), NULL, ARG_PATH },
	{ "merge", 0, OPT_FLAG, NULL,
	  "merge text files that both sides changed in different places", AT(merge) },
	{ "accept-risky", 0, OPT_FLAG, NULL,
	  "commit what deserves a look, too: it has had it", AT(accept_risky) },
	{ "at", 0, OPT_STRING, "N", "what the transaction was at checkpoint N, no more",
	  AT(at) },
	{ "dry-run", 0, OPT_FLAG, NULL, "say what would be committed, and do nothing",
	  AT(dry_run) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ "PATH", ARG_PATH, false, true, AT(paths) },
	{ NULL },
};

struct change_totals commit_totals(const struct commit_result *r)
{
	return (struct change_totals){ r->added, r->modified, r->deleted, r->bytes };
}

struct choice {
	struct op_paths paths, ours, theirs;
};

static void choice_free(struct choice *c)
{
	op_paths_free(&c->paths);
	op_paths_free(&c->ours);
	op_paths_free(&c->theirs);
}

static int choose(struct op_ctx *ctx, const struct commit_req *rq, char *const *words,
		  const struct txn_record *rec, struct choice *c, struct err *e)
{
	if (op_paths_make(ctx, words, &c->paths, e) < 0)
		return -1;
	if (op_paths_make(ctx, rq->ours, &c->ours, e) < 0)
		return err_wrap(e, "--ours");
	if (op_paths_make(ctx, rq->theirs, &c->theirs, e) < 0)
		return err_wrap(e, "--theirs");
	if (op_paths_check(&c->paths, rec, e) < 0)
		return -1;
	if (op_paths_check(&c->ours, rec, e) < 0)
		return err_wrap(e, "--ours");
	return op_paths_check(&c->theirs, rec, e) < 0 ? err_wrap(e, "--theirs") : 0;
}

static int count_left(const struct txn_record *rec, struct change_totals *t,
		      struct err *e)
{
	AUTO_FREE struct change_layer *layers = NULL;
	size_t n;

	layers = txn_layers(rec, &n);
	return change_count(layers, n, t, e);
}

static int commit(struct op_ctx *ctx, struct home *h, struct txn *t,
		  const struct commit_req *rq, const struct choice *c,
		  struct commit_res *res, struct err *e)
{
	struct diff_rules rules;
	const struct commit_wish w = {
		.judge = diff_judge,
		.judge_arg = &rules,
		.paths = (const char *const *)c->paths.v,
		.ours = (const char *const *)c->ours.v,
		.theirs = (const char *const *)c->theirs.v,
		.merge = rq->merge,
		.accept_risky = rq->accept_risky,
		.dry_run = rq->dry_run,
		.message = rq->message,
		.progress = ctx->progress,
		.progress_arg = ctx->progress_arg,
	};
	struct op_policy policy = { NULL };
	struct err ignored;
	int r;

	r = op_policy_load(ctx, t->rec.workspace, &policy, e);
	diff_rules_open(&rules, ctx, policy.p, t->rec.workspace, false);
	if (r == 0)
		r = txn_commit(h, t, &w, &res->done, e);
	diff_rules_close(&rules);
	op_policy_free(&policy);
	if (r < 0)
		return -1;
	housekeep_commit(h, t, &res->done);
	/* The commit is done: a count that fails must not make it look undone. */
	if (res->done.left && !rq->dry_run && count_left(&t->rec, &res->left, &ignored))
		res->left = (struct change_totals){ 0 };
	return 0;
}

/* Takes the transaction back to the checkpoint of --at; the later checkpoints stay. */
static int go_back(struct home *h, struct txn *t, const struct commit_req *rq,
		   struct err *e)
{
	struct timeline_gone gone;
	struct timeline *c;
	int64_t seq;
	int r;

	if (point_parse(rq->at, "--at", &seq, e) < 0 ||
	    timeline_open(h, t, true, &c, e) < 0)
		return -1;
	r = timeline_go(c, seq, NULL, &gone, e);
	timeline_close(c);
	return r;
}

static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct commit_req *rq = req;
	int64_t seq;

	(void)ctx;
	if (!rq->at)
		return 0;
	if (!rq->dry_run)
		return point_parse(rq->at, "--at", &seq, e);
	err_set(e, ERR_USAGE, "--at and --dry-run do not go together");
	return err_hint(e, "see: stet rollback --to N --dry-run");
}

static const struct verb_states *states_of(const void *req)
{
	static const struct verb_states at_checkpoint = {
		.in = IN(TXN_PENDING) | IN(TXN_INTERRUPTED),
		.refusals = { { IN(TXN_RUNNING), NULL,
				"end its command first, or: stet fork --at N" },
			      { IN(TXN_GONE) | IN(TXN_KEPT), NULL,
				"stet undo @ takes that back", true } },
	};

	return ((const struct commit_req *)req)->at ? &at_checkpoint : &states_to_decide;
}

/*
 * The result is filled in on failure, too: ERR_CONFLICT and ERR_DENIED come with their paths, and
 * nothing was changed.
 */
static int op_commit(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct commit_req *rq = req;
	struct commit_res *res = result;
	struct choice choice = { 0 };
	int r = rq->at ? go_back(c->h, &c->t, rq, e) : 0;

	res->dry_run = rq->dry_run;
	if (r == 0)
		r = choose(c->ctx, rq, c->paths, &c->t.rec, &choice, e);
	if (r == 0)
		r = commit(c->ctx, c->h, &c->t, rq, &choice, res, e);
	if (r == 0 && !rq->dry_run && !c->paths && !res->done.op) {
		r = inplace_keep(c->h, &c->t, e);
		res->kept = r > 0;
		r = r < 0 ? -1 : 0;
	}
	choice_free(&choice);
	return r;
}

#define DONE(field) offsetof(struct commit_result, field)

const struct field refused_fields[] = {
	{ "conflicts", FIELD_NOTES, DONE(conflicts), "paths that the host changed, too" },
	{ "risks", FIELD_NOTES, DONE(risks), "changes that deserve a look" },
	{ "denied", FIELD_NOTES, DONE(denied), "changes that a rule refuses" },
	{ NULL },
};

static json_t *done(const void *at)
{
	struct change_totals t = commit_totals(&((const struct commit_res *)at)->done);

	return schema_write(totals_fields, &t);
}

static bool is_pending_rest(const void *at)
{
	const struct commit_res *res = at;

	return res->done.left && !res->dry_run;
}

#define RES(field) offsetof(struct commit_res, field)

static const struct field explained[] = {
	{ "", FIELD_OBJECT, RES(done), "", FIELD_FLAT, refused_fields },
	{ NULL },
};

static const struct field commit_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "op", FIELD_INT64, RES(done.op), "number of the operation; null: nothing to do",
	  FIELD_NULL_0 },
	{ "dry_run", FIELD_BOOL, RES(dry_run), "nothing was done" },
	{ "kept", FIELD_BOOL, RES(kept), "it worked in place, and its snapshot is gone",
	  FIELD_IF_SET },
	{ "changes", FIELD_OBJECT, 0, "that were applied", .fields = totals_fields,
	  .make = done },
	{ "merged", FIELD_UINT64, RES(done.merged), "files that were merged" },
	{ "left", FIELD_BOOL, RES(done.left), "something stays pending" },
	{ "pending", FIELD_OBJECT, RES(left), "what stays pending",
	  .fields = totals_fields, .present = is_pending_rest },
	{ "", FIELD_OBJECT, RES(done), "", FIELD_FLAT, refused_fields },
	{ NULL },
};

static void commit_free(void *result)
{
	struct commit_res *res = result;

	commit_result_free(&res->done);
	txn_facts_free(&res->txn);
}

const struct verb verb_commit = {
	.name = "commit",
	.summary = "apply the changes of a transaction to the host",
	.description =
		"Applies what a transaction holds to the host: all of it or, if anything goes "
		"wrong, nothing. With PATHs only what lies at or below them, with the "
		"directories that this needs; the rest stays pending. What such a directory has "
		"replaced makes room for it. A PATH may be a pattern "
		"with *, ? and [...]; put it in quotes, or the shell looks for host files. What is "
		"the very name of something changed is that alone, and no pattern.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest open one of the "
		"current directory. A first operand that names no transaction is taken for a "
		"path.\n"
		"\n"
		"What changed on the host since the transaction began is never overwritten "
		"unasked: such paths are listed, nothing is done, and the exit status is 3. "
		"Decide with --ours (the transaction wins, the host's version is kept for undo), "
		"--theirs (the host's version stays) or --merge. See stet diff --conflicts. Who "
		"names a path exactly is stronger than a pattern or a directory around it; a path "
		"that both name alike is an error. What the host has at a path that was hidden "
		"from the command (stet run --hide) is decided in the same way, if the command "
		"made something there or deleted a directory around it; with --ours, the host's "
		"directory is replaced as a whole. What was read-only (stet run --read-only) is "
		"never committed; --theirs leaves it as it is.\n"
		"\n"
		"Changes that act later or elsewhere (programs with their owner's rights, git "
		"hooks, CI and shell start-up files, links that leave the workspace, one of "
		"several hard links of a file) are listed, "
		"too. On a terminal you are asked; otherwise it takes --accept-risky, and the "
		"exit status is 2 without it.\n"
		"\n"
		"With --at, the transaction goes back to checkpoint N first: what came later is "
		"not committed, and stays among its checkpoints.\n"
		"\n"
		"stet undo takes a commit back.\n"
		"\n"
		"  stet commit\n"
		"  stet commit t3 src/ '*.md' -m 'parser and docs'\n"
		"  stet commit t3 --ours src/a.c --theirs src/b.c",
	.opts = opts,
	.args = args,
	.check = check,
	.request_size = sizeof(struct commit_req),
	.home = HOME_RECOVERED,
	.target = TARGET_TXN_PATHS,
	.states = &states_to_decide,
	.states_of = states_of,
	.effect = EFFECT_HOST,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_commit,
	.result_size = sizeof(struct commit_res),
	.result = commit_fields,
	.explain = explained,
	.free = commit_free,
};
