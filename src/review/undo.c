/* SPDX-License-Identifier: Apache-2.0 */
#include "review/undo.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "call/call.h"
#include "call/paths.h"
#include "commit/undo.h"
#include "inplace/inplace.h"
#include "journal/ckpt_rows.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "review/commit.h"
#include "session/housekeep.h"
#include "sys/mountinfo.h"
#include "txn/end.h"
#include "txn/find.h"

#define AT(field) offsetof(struct undo_req, field)

static const struct verb_opt opts[] = {
	{ "dry-run", 0, OPT_FLAG, NULL, "say whether it would go through, and do nothing",
	  AT(dry_run) },
	{ "ours", 0, OPT_LIST, "PATH",
	  "conflicts there: go on, whatever the host has there; repeatable", AT(ours),
	  NULL, ARG_PATH },
	{ "theirs", 0, OPT_LIST, "PATH",
	  "conflicts there: leave what the host has; repeatable", AT(theirs), NULL,
	  ARG_PATH },
	{ NULL },
};

static const struct verb_arg undo_args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ "PATH", ARG_PATH, false, true, AT(paths) },
	{ NULL },
};

static const struct verb_arg redo_args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ NULL },
};

struct search {
	struct journal *j;
	const char *cwd;
	bool redo;
	bool commits; /* no rollbacks: it is about paths */
	struct txn *t;
	int64_t op; /* the operation that it is about; 0 until found */
	enum op_kind kind;
};

/* Newest first: the first operation that can be taken back is meant; for redo, the first undo. */
static bool is_candidate(const struct search *s, const struct op_record *r)
{
	if (r->state != OP_DONE)
		return false;
	if (s->redo)
		return r->kind == OP_UNDO && r->redone == OP_STANDS;
	return r->undone == OP_STANDS &&
	       (r->kind == OP_COMMIT || (r->kind == OP_ROLLBACK && !s->commits));
}

static int consider(void *arg, struct op_record *r, struct err *e)
{
	struct search *s = arg;

	if (!is_candidate(s, r))
		return 0;
	if (journal_txn_get(s->j, r->txn, &s->t->rec, e) < 0)
		return -1;
	if (s->t->rec.state != TXN_PRUNED && (path_within(s->cwd, s->t->rec.workspace) ||
					      txn_has_taken(&s->t->rec, s->cwd))) {
		s->op = r->id;
		s->kind = r->kind;
		return 1;
	}
	txn_record_free(&s->t->rec);
	memset(&s->t->rec, 0, sizeof(s->t->rec));
	return 0;
}

static int take_time(void *arg, struct op_record *r, struct err *e)
{
	(void)e;
	*(int64_t *)arg = r->done_ns;
	return 1;
}

/* When something was last done with a transaction; 0: never. */
static int64_t last_op_ns(struct journal *j, int64_t txn)
{
	struct err none;
	int64_t ns = 0;

	journal_op_each(j, txn, take_time, &ns, &none);
	return ns;
}

/*
 * The newest transaction here was taken to a checkpoint, or paths of it were, after what is found:
 * whoever says undo means that, and it has a command of its own.
 */
static int check_points(struct op_ctx *ctx, struct search *s, struct err *e)
{
	struct ckpt_records all = { 0 };
	struct txn t = { .lock = -1 };
	const struct ckpt_record *last;
	struct err none;
	long long id, before;
	int r = 0;

	if (op_ctx_txn(ctx, NULL, &t, &none) < 0)
		return 0;
	id = t.rec.id;
	if (journal_ckpt_all(s->j, t.rec.id, &all, &none) < 0 || !all.n)
		goto out;
	last = &all.v[all.n - 1];
	if (last->target < 0 || last->time_ns < last_op_ns(s->j, t.rec.id) ||
	    (s->op && last->time_ns < last_op_ns(s->j, s->t->rec.id)) ||
	    (t.rec.state != TXN_FROZEN && t.rec.state != TXN_ACTIVE))
		goto out;
	before = all.n > 1 ? all.v[all.n - 2].seq : 0;
	r = err_set(e, ERR_STATE,
		    "what was done last in %s is the %s of t%lld %s checkpoint %lld",
		    s->cwd, last->cause, id,
		    strcmp(last->cause, "rollback") == 0 ? "to" : "from",
		    (long long)last->target);
	err_hint(e, "take that back: stet rollback t%lld --to %lld", id, before);
	if (s->op)
		err_hint(e,
			 "take that back: stet rollback t%lld --to %lld; or undo the %s "
			 "before it: stet undo t%lld",
			 id, before, op_kind_name(s->kind), (long long)s->t->rec.id);
out:
	ckpt_records_free(&all);
	txn_close(&t);
	return r;
}

static int find_here(struct op_ctx *ctx, struct home *h, bool redo, bool commits,
		     struct txn *t, int64_t *op, struct err *e)
{
	struct search s = { .j = h->journal, .redo = redo, .commits = commits, .t = t };

	*t = (struct txn){ .lock = -1 };
	if (op_ctx_cwd(ctx, &s.cwd, e) < 0 ||
	    journal_op_each(h->journal, 0, consider, &s, e) < 0)
		return -1;
	*op = s.op;
	if (!redo && !commits && check_points(ctx, &s, e) < 0)
		return -1;
	if (s.op)
		return 0;
	err_set(e, ERR_STATE, "nothing to %s in %s", redo ? "redo" : "undo", s.cwd);
	return err_hint(e, "see: stet log --ops");
}

/* The operation meant (0: the transaction's newest) and the operands that are paths. */
static int find(struct op_ctx *ctx, struct home *h, const struct undo_req *rq, bool redo,
		struct txn *t, int64_t *op, char ***paths, struct err *e)
{
	struct err none;
	size_t i;

	*op = 0;
	if (rq->txn && op_ctx_txn(ctx, rq->txn, t, e) < 0) {
		if (e->kind != ERR_USAGE || redo)
			return -1;
		/* Not one of ours by number or name: a path, of the newest commit here. */
		if (find_here(ctx, h, redo, true, t, op, &none) < 0)
			return -1;
		strv_push(paths, xstrdup(rq->txn));
	} else if (!rq->txn && find_here(ctx, h, redo, false, t, op, e) < 0) {
		return -1;
	}
	for (i = 0; rq->paths && rq->paths[i]; i++)
		strv_push(paths, xstrdup(rq->paths[i]));
	return 0;
}

/* The kind of the operation that the undo or redo @op is about. */
static enum op_kind kind_of(struct home *h, int64_t op)
{
	struct op_record r = { 0 }, target = { 0 };
	enum op_kind kind = OP_COMMIT;
	struct err ignored;

	if (journal_op_get(h->journal, op, &r, &ignored) < 0)
		return kind;
	if (journal_op_get(h->journal, r.target, &target, &ignored) == 0)
		kind = target.kind;
	op_record_free(&r);
	op_record_free(&target);
	return kind;
}

struct choice {
	struct op_paths paths, ours, theirs;
};

static int settle(struct choice *c, struct home *h, const struct txn *t, int64_t op,
		  bool redo, struct err *e)
{
	return op_paths_settle(&c->paths, h, t, op, redo, e) < 0 ||
			       op_paths_settle(&c->ours, h, t, op, redo, e) < 0 ||
			       op_paths_settle(&c->theirs, h, t, op, redo, e) < 0
		       ? -1
		       : 0;
}

static int choose(struct op_ctx *ctx, const struct undo_req *rq, char *const *words,
		  struct choice *c, struct err *e)
{
	if (op_paths_make(ctx, words, &c->paths, e) < 0)
		return -1;
	if (op_paths_make(ctx, rq->ours, &c->ours, e) < 0)
		return err_wrap(e, "--ours");
	return op_paths_make(ctx, rq->theirs, &c->theirs, e) < 0 ? err_wrap(e, "--theirs")
								 : 0;
}

static int replay(struct op_ctx *ctx, struct home *h, struct txn *t, int64_t op,
		  bool redo, const struct choice *c, struct undo_res *res, struct err *e)
{
	const struct commit_wish w = {
		.paths = (const char *const *)c->paths.v,
		.ours = (const char *const *)c->ours.v,
		.theirs = (const char *const *)c->theirs.v,
		.dry_run = res->dry_run,
		.progress = ctx->progress,
		.progress_arg = ctx->progress_arg,
	};
	int r;

	/* It may be noting what the commit has left. */
	if (!res->dry_run && t->rec.state == TXN_COMMITTED)
		housekeep_stop(h, t->rec.id);
	r = redo ? txn_redo(h, t, &w, &res->done, e)
		 : txn_undo(h, t, op, &w, &res->done, e);
	if (r == 0 && !res->dry_run)
		res->kind = kind_of(h, res->done.op);
	return r;
}

static int go(struct verb_call *c, const struct undo_req *rq, bool redo,
	      struct undo_res *res, struct err *e)
{
	struct choice choice = { 0 };
	int64_t op = 0;
	int r;

	res->dry_run = rq->dry_run;
	r = find(c->ctx, c->h, rq, redo, &c->t, &op, &c->paths, e);
	if (r == 0)
		r = call_allowed(c, &c->t.rec, e);
	if (r == 0)
		r = choose(c->ctx, rq, c->paths, &choice, e);
	if (r == 0)
		r = settle(&choice, c->h, &c->t, op, redo, e);
	if (r == 0)
		r = replay(c->ctx, c->h, &c->t, op, redo, &choice, res, e);
	res->some = res->done.part;
	op_paths_free(&choice.paths);
	op_paths_free(&choice.ours);
	op_paths_free(&choice.theirs);
	return r;
}

/* Which operations there are to take back is looked up in the journal, whatever the state. */
static const struct verb_states states_to_take_back = {
	.in = ~0u,
	.final = "worked in place: that cannot be taken back",
	.final_hint = "stet diff @ shows what it was",
};

/*
 * Without a transaction, the newest operation on any whose workspace holds the current directory is
 * meant; for redo, the operation that was undone last. The result is filled in on failure, too:
 * ERR_CONFLICT comes with its paths.
 */
static int op_undo(struct verb_call *c, const void *req, void *result, struct err *e)
{
	return go(c, req, false, result, e);
}

static int op_redo(struct verb_call *c, const void *req, void *result, struct err *e)
{
	return go(c, req, true, result, e);
}

static bool is_done(const void *at)
{
	return !((const struct undo_res *)at)->dry_run;
}

static const char *kind_name(const void *at)
{
	return op_kind_name(((const struct undo_res *)at)->kind);
}

#define RES(field) offsetof(struct undo_res, field)

static const struct field undo_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "dry_run", FIELD_BOOL, RES(dry_run), "nothing was done" },
	{ "changes", FIELD_UINT64, RES(done.changes), "steps" },
	{ "op", FIELD_INT64, RES(done.op), "number of the operation",
	  .present = is_done },
	{ "of", FIELD_STRING, 0, "commit or rollback: what was taken back, or done again",
	  .present = is_done, .word = kind_name },
	{ NULL },
};

static const struct field explained[] = {
	{ "", FIELD_OBJECT, RES(done), "", FIELD_FLAT, refused_fields },
	{ NULL },
};

static void undo_free(void *result)
{
	struct undo_res *res = result;

	commit_result_free(&res->done);
	txn_facts_free(&res->txn);
}

const struct verb verb_undo = {
	.name = "undo",
	.summary = "take a commit or rollback back",
	.description =
		"Takes the newest commit or rollback back: the host's files are as they were "
		"before it, and the transaction is pending again. What was changed in it at the "
		"same paths after a commit of a part stays pending as it is; the committed "
		"version is kept for redo. Repeated, undo goes further back. With PATHs only what "
		"the newest commit that changed them did at or below them; the rest of it "
		"stays.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest operation on "
		"any transaction of the current directory is meant. If its newest transaction was "
		"taken to a checkpoint since, or paths were restored, nothing is done, and what "
		"takes that back is said. A first operand that names no transaction is taken for a "
		"path.\n"
		"\n"
		"What changed on the host after the commit is never overwritten unasked: such "
		"paths are listed, nothing is done, and the exit status is 3. Decide with --ours "
		"(the undo goes on there, the host's version is kept) or --theirs (the host's "
		"version stays).\n"
		"\n"
		"  stet undo\n"
		"  stet undo t3 src/a.c",
	.opts = opts,
	.args = undo_args,
	.request_size = sizeof(struct undo_req),
	.home = HOME_RECOVERED,
	.target = TARGET_BODY,
	.states = &states_to_take_back,
	.effect = EFFECT_HOST,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_undo,
	.result_size = sizeof(struct undo_res),
	.result = undo_fields,
	.explain = explained,
	.free = undo_free,
};

const struct verb verb_redo = {
	.name = "redo",
	.summary = "do again what was undone",
	.description =
		"Does again what was undone last, a commit, a part of one, or a rollback. "
		"Repeated, it goes further forward: what was undone last comes first, then what "
		"was undone before that. Once a transaction was changed in another way "
		"(committed anew, rolled back, explored, taken to a checkpoint, restored), what "
		"was undone until then cannot be done again.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the operation undone "
		"last on any transaction of the current directory is meant. The exit status is "
		"3 if the host changed meanwhile; then nothing is done, and --ours or --theirs "
		"decides.\n"
		"\n"
		"  stet redo",
	.opts = opts,
	.args = redo_args,
	.request_size = sizeof(struct undo_req),
	.home = HOME_RECOVERED,
	.target = TARGET_BODY,
	.states = &states_to_take_back,
	.effect = EFFECT_HOST,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_redo,
	.result_size = sizeof(struct undo_res),
	.result = undo_fields,
	.explain = explained,
	.free = undo_free,
};
