/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/explore.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/call.h"
#include "host/base.h"
#include "inplace/inplace.h"
#include "journal/txn_rows.h"
#include "session/housekeep.h"
#include "session/judge.h"
#include "session/policy_files.h"
#include "session/sandbox.h"
#include "txn/begin.h"
#include "txn/end.h"
#include "txn/marks.h"
#include "verbs/fork.h"

#define AT(field) offsetof(struct explore_req, field)

static const struct verb_opt opts[] = {
	{ "at", 0, OPT_STRING, "N", "at checkpoint N: a copy, thrown away afterwards",
	  AT(at) },
	SOCKET_ROW(AT(sockets)),
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ "COMMAND", ARG_COMMAND, false, true, AT(argv) },
	{ NULL },
};

static int execute(struct op_ctx *ctx, struct txn *t, const struct view *v,
		   const struct explore_req *rq, struct run_result *run, struct err *e)
{
	const char *shell = op_ctx_env(ctx, "SHELL");
	AUTO_FREE char *prog = xstrdup(shell ? shell : "/bin/sh");
	char interactive[] = "-i";
	char *shell_argv[] = { prog, interactive, NULL };
	char **env = sandbox_env(ctx, NULL, NULL, t->rec.id);
	struct run_spec spec = {
		.view = v,
		.argv = rq->argv ? rq->argv : shell_argv,
		.envp = env,
		.umask = ctx->umask,
		.cwd = v->cwd,
		.cwd_rule = CWD_OR_ABOVE,
		.want_tty = true,
		.control = t->rec.dir,
		.offline = v->offline,
		.report = ctx->report,
		.since = { t->rec.begin_ns / 1000000000, t->rec.begin_ns % 1000000000 },
	};
	struct op_policy policy;
	struct judge j;
	int r;

	if (op_policy_load(ctx, t->rec.workspace, &policy, e) < 0) {
		op_policy_free(&policy);
		strv_free(env);
		return -1;
	}
	judge_open(&j, ctx, policy.p, &t->rec);
	judge_attach(&j, &spec);
	r = runner_run(&spec, run, e);
	if (r == 0) {
		txn_note_idle(&t->rec, run->untouched);
		ctx->mid_line = run->mid_line;
	}
	judge_close(&j);
	op_policy_free(&policy);
	strv_free(env);
	return r;
}

/* Did the commands of the transaction have the socket? Then it is on record already. */
static bool is_allowed(const struct txn_record *r, const char *path)
{
	for (size_t i = 0; i < r->neffects; i++)
		if (strcmp(r->effects[i].kind, "socket") == 0 &&
		    strcmp(r->effects[i].what, path) == 0)
			return true;
	return false;
}

/* @h: where the sockets are recorded as effects; NULL for a copy, of which nothing is left. */
static int allow_sockets(struct op_ctx *ctx, struct home *h, struct txn *t,
			 struct view *v, char *const *names, struct err *e)
{
	char **paths = NULL;
	int r = sandbox_sockets(ctx, names, &paths, e);

	for (size_t i = 0; r == 0 && paths && paths[i]; i++) {
		r = view_allow_socket(v, paths[i], false, e);
		if (r == 0 && h && !is_allowed(&t->rec, paths[i]))
			r = journal_txn_add_effect(h->journal, &t->rec, "socket",
						   paths[i], JOURNAL_LAZY, e);
	}
	strv_free(paths);
	return r;
}

/* At a checkpoint: in a copy of it, of which nothing is left. */
static int visit_copy(struct op_ctx *ctx, struct home *h, struct txn *t,
		      const struct explore_req *rq, struct run_result *run, struct err *e)
{
	struct sandbox sb;
	struct err ignored;
	int64_t seq;
	int r;

	if (fork_open(ctx, h, t, rq->at, NULL, t->rec.argv, &sb, &seq, e) < 0)
		return -1;
	r = allow_sockets(ctx, NULL, &sb.t, &sb.v, rq->sockets, e);
	if (r < 0)
		txn_abandon(&sb.t);
	else
		r = op_ctx_look(ctx, &sb.h, e) < 0 || timeline_record(sb.h, &sb.t, e) < 0
			    ? -1
			    : 0;
	if (r == 0) {
		r = execute(ctx, &sb.t, &sb.v, rq, run, e);
		txn_discard(sb.h, &sb.t, r < 0 ? 125 : run->status, "explore", &ignored);
	}
	sandbox_close(&sb);
	return r;
}

/* A visit from its beginning to its end; @t is locked meanwhile. */
static int visit(struct op_ctx *ctx, struct home *h, struct txn *t, struct view *v,
		 const struct explore_req *rq, struct run_result *run, struct err *e)
{
	AUTO_FREE char *reason = t->rec.reason ? xstrdup(t->rec.reason) : NULL;
	int status = t->rec.exit_status;
	struct err second;
	int r, resumed;

	/* Whatever is still done for it is done again afterwards. */
	housekeep_stop(h, t->rec.id);
	resumed = inplace_check_again(t, e) < 0 || txn_resume(h, v, t, e) < 0
			  ? -1
			  : inplace_resume(t, e);
	if (resumed < 0) {
		housekeep_again(h, t);
		return -1;
	}
	r = allow_sockets(ctx, h, t, v, rq->sockets, e);
	if (r == 0)
		r = execute(ctx, t, v, rq, run, e);
	if (resumed)
		inplace_end(t);
	/* How the command itself ended stays on record, not how the visit did. */
	if (txn_end(h, t, status, reason ? reason : "error", &second) < 0 && r == 0) {
		*e = second;
		r = -1;
	}
	housekeep_again(h, t);
	return r;
}

static const struct verb_states states = {
	.in = IN(TXN_PENDING) | IN(TXN_INTERRUPTED),
	.refusals = { { IN(TXN_RUNNING), NULL,
			"end its command first, then try again" } },
};

static const struct verb_states *states_of(const void *req)
{
	return ((const struct explore_req *)req)->at ? &states_with_checkpoints : &states;
}

/*
 * What the command changes joins the transaction, which is pending again afterwards, with the end
 * that its own command had.
 */
static int op_explore(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct explore_req *rq = req;
	struct explore_res *res = result;
	struct view v = { 0 };
	int r;

	res->was_copy = rq->at;
	if (rq->at)
		return visit_copy(c->ctx, c->h, &c->t, rq, &res->run, e);
	if (sandbox_view_like(c->ctx, c->h, &c->t.rec, &v, e) < 0)
		return -1;
	r = visit(c->ctx, c->h, &c->t, &v, rq, &res->run, e);
	view_free(&v);
	return r;
}

static bool has_ended(const void *at)
{
	return ((const struct explore_res *)at)->run.reason == RUN_ERROR;
}

#define RES(field) offsetof(struct explore_res, field)

static const struct field explore_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_end_fields },
	{ "error", FIELD_OBJECT, RES(run.trouble), "why the sandbox ended",
	  .fields = error_fields, .present = has_ended },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_exec_fields },
	{ NULL },
};

static int explore_status(const void *req, const void *res)
{
	(void)req;
	return ((const struct explore_res *)res)->run.status;
}

static void explore_free(void *res)
{
	txn_facts_free(&((struct explore_res *)res)->txn);
}

const struct verb verb_explore = {
	.name = "explore",
	.summary = "open a shell inside a finished transaction",
	.description =
		"Runs your shell, or COMMAND, in the view of the host that the transaction's "
		"command had when it ended: its files, its private /tmp, its hidden paths. What "
		"is changed there joins the transaction, which stays pending. If the directory "
		"in which the command was started is gone there, it is the nearest one above.\n"
		"\n"
		"With --at, what is seen is the state at checkpoint N, in a copy: what is changed "
		"there is thrown away afterwards.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest open one of the "
		"current directory. The exit status is the shell's or command's; 125 if it "
		"could not be entered. With --json the result is the last line of standard "
		"error.\n"
		"\n"
		"  stet explore\n"
		"  stet explore t3 -- make test",
	.opts = opts,
	.args = args,
	.request_size = sizeof(struct explore_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN,
	.states = &states,
	.states_of = states_of,
	.effect = EFFECT_RUNS,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_explore,
	.result_size = sizeof(struct explore_res),
	.result = explore_fields,
	.status = explore_status,
	.free = explore_free,
};
