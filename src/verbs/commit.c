/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/commit.h"

#include <string.h>

#include "base/cleanup.h"
#include "diff/list.h"
#include "inplace/inplace.h"
#include "session/diffrule.h"
#include "session/housekeep.h"
#include "session/json.h"
#include "session/paths.h"
#include "session/policy_files.h"
#include "txn/end.h"
#include "txn/find.h"
#include "verbs/checkpoint.h"

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

static bool is_pending(const struct txn_record *r)
{
	enum txn_look look = txn_look(r);

	return look == TXN_PENDING || look == TXN_INTERRUPTED;
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
	/* Any other state is for the commit itself to refuse. */
	if (!is_pending(rec))
		return 0;
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

/* The transaction goes back first; what came after stays as checkpoints of it. */
static int go_back(struct home *h, struct txn *t, const struct commit_req *rq,
		   struct err *e)
{
	struct timeline_gone gone;
	struct timeline *c;
	int64_t seq;
	int r;

	if (rq->dry_run) {
		err_set(e, ERR_USAGE, "--at and --dry-run do not go together");
		return err_hint(e, "see: stet rollback --to N --dry-run");
	}
	if (txn_look(&t->rec) == TXN_RUNNING) {
		err_set(e, ERR_STATE, "t%lld is running", (long long)t->rec.id);
		return err_hint(e, "end its command first, or: stet fork --at N");
	}
	if (point_parse(rq->at, "--at", &seq, e) < 0 ||
	    timeline_open(h, t, true, &c, e) < 0)
		return -1;
	r = timeline_go(c, seq, NULL, &gone, e);
	timeline_close(c);
	return r;
}

int op_commit(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct commit_req *rq = req;
	struct commit_res *res = result;
	struct txn t = { .lock = -1 };
	struct choice c = { 0 };
	char **words = NULL;
	struct home *h;
	int r;

	res->dry_run = rq->dry_run;
	r = op_ctx_home(ctx, &h, e);
	if (r == 0)
		r = op_ctx_operands(ctx, rq->txn, rq->paths, &t, &words, e);
	if (r == 0) {
		if (rq->at)
			r = go_back(h, &t, rq, e);
		if (r == 0)
			r = choose(ctx, rq, words, &t.rec, &c, e);
		if (r == 0)
			r = commit(ctx, h, &t, rq, &c, res, e);
		if (r == 0 && !rq->dry_run && !words && !res->done.op) {
			r = inplace_keep(h, &t, e);
			res->kept = r > 0;
			r = r < 0 ? -1 : 0;
		}
		res->rec = t.rec;
		memset(&t.rec, 0, sizeof(t.rec));
		txn_close(&t);
	}
	choice_free(&c);
	strv_free(words);
	return r;
}

void commit_explain(const struct commit_result *r, json_t *o)
{
	json_set_notes(o, "conflicts", &r->conflicts);
	json_set_notes(o, "risks", &r->risks);
	json_set_notes(o, "denied", &r->denied);
}

static json_t *commit_json(const void *result)
{
	const struct commit_res *res = result;
	struct change_totals done = commit_totals(&res->done);
	json_t *o = json_result();

	json_object_set_new(o, "txn", json_txn(&res->rec));
	json_object_set_new(o, "op",
			    res->done.op ? json_integer(res->done.op) : json_null());
	json_object_set_new(o, "dry_run", json_boolean(res->dry_run));
	if (res->kept)
		json_object_set_new(o, "kept", json_true());
	json_object_set_new(o, "changes", json_totals(&done));
	json_object_set_new(o, "merged", json_integer((json_int_t)res->done.merged));
	json_object_set_new(o, "left", json_boolean(res->done.left));
	if (res->done.left && !res->dry_run)
		json_object_set_new(o, "pending", json_totals(&res->left));
	commit_explain(&res->done, o);
	return o;
}

static void explain(const void *res, json_t *error)
{
	commit_explain(&((const struct commit_res *)res)->done, error);
}

static void commit_free(void *result)
{
	struct commit_res *res = result;

	commit_result_free(&res->done);
	txn_record_free(&res->rec);
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
	.flags = VERB_JSON | VERB_QUIET,
	.request_size = sizeof(struct commit_req),
	.result_size = sizeof(struct commit_res),
	.run = op_commit,
	.json = commit_json,
	.explain = explain,
	.free = commit_free,
};
