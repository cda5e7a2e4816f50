/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/run.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "call/call.h"
#include "diff/list.h"
#include "diff/walk.h"
#include "host/early.h"
#include "inplace/back.h"
#include "inplace/inplace.h"
#include "review/commit.h"
#include "session/diffrule.h"
#include "session/housekeep.h"
#include "session/sandbox.h"
#include "snap/foreign.h"
#include "timeline/timeline.h"
#include "txn/end.h"

static const char *const actions[] = { "commit", "keep", "rollback", NULL };
static const char *const askers[] = { "terminal", "socket", "nobody", NULL };
static const char *const points[] = { "every-call", "risky", "none", NULL };
static const char *const backends[] = { "overlay", "btrfs", NULL };
static const char *const tmps[] = { "private", "host", NULL };

#define AT(field) offsetof(struct run_req, field)

static const struct verb_opt opts[] = {
	{ "name", 'n', OPT_STRING, "NAME", "a name to call the transaction by",
	  AT(name) },
	{ "on-success", 0, OPT_CHOICE, "ACTION",
	  "after exit status 0: commit, keep or rollback", AT(on_success), actions,
	  ARG_CHOICE },
	{ "on-failure", 0, OPT_CHOICE, "ACTION",
	  "after any other end: commit, keep or rollback", AT(on_failure), actions,
	  ARG_CHOICE },
	{ "accept-risky", 0, OPT_FLAG, NULL, "commit what deserves a look, too",
	  AT(accept_risky) },
	SANDBOX_ROWS(AT(sandbox)),
	LIMIT_ROWS(AT(limits)),
	{ "tmp", 0, OPT_CHOICE, "MODE",
	  "private: an empty /tmp (default); host: the host's, captured like the rest",
	  AT(tmp), tmps, ARG_CHOICE },
	{ "checkpoint", 0, OPT_STRING, "WHEN",
	  "every-call (default), risky, none, or a time such as 30s", AT(checkpoint),
	  points, ARG_CHOICE },
	{ "backend", 0, OPT_CHOICE, "HOW",
	  "overlay: capture everything (default); btrfs: work in place, with a snapshot",
	  AT(backend), backends, ARG_CHOICE },
	{ "read-only", 0, OPT_LIST, "PATH", "let nothing be written there; repeatable",
	  AT(read_only), NULL, ARG_PATH },
	{ "write-through", 0, OPT_LIST, "PATH",
	  "let writes there reach the host at once, beyond undo; repeatable",
	  AT(write_through), NULL, ARG_PATH },
	{ "ask", 0, OPT_CHOICE, "WHO",
	  "who answers what a rule asks: terminal (default), socket (stet consent), nobody",
	  AT(ask), askers, ARG_CHOICE },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "COMMAND", ARG_COMMAND, true, true, AT(argv) },
	{ NULL },
};

/* A name must never be taken for a number, an option or a path. */
int run_check_name(const char *name, struct err *e)
{
	const char *p = name + (*name == 't');
	size_t n = strlen(name);

	if (!n || n > 64 || !isalnum((unsigned char)*name) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789._-") != n) {
		err_set(e, ERR_USAGE, "--name: not a name for a transaction");
		return err_hint(e,
				"use up to 64 letters, digits, '.', '_' and '-', with a "
				"letter or digit first");
	}
	if (*p && strspn(p, "0123456789") == strlen(p)) {
		err_set(e, ERR_USAGE, "--name '%s' would be taken for a number", name);
		return err_hint(e, "choose a name with other letters in it");
	}
	return 0;
}

struct tally {
	struct run_res *res;
	size_t list;	 /* most paths to be listed */
	bool brief;	 /* so many that they are not few are enough */
	uint64_t before; /* files seen below a directory that is yet to come */
	struct early *
		early; /* what the host has now, if that is too much to be noted at once */
};

static void list_path(struct run_res *res, const struct change *c)
{
	if ((res->npaths & (res->npaths - 1)) == 0)
		res->paths = xrealloc(res->paths, (res->npaths ? 2 * res->npaths : 1) *
							  sizeof(*res->paths));
	res->paths[res->npaths++] = (struct run_path){ .kind = c->kind,
						       .path = xstrdup(c->path) };
}

/* Counts, and gathers what is not implied: deletions of a directory come after those
 * of its contents, additions before. */
static int tally(void *arg, const struct change *c, struct err *e)
{
	struct tally *t = arg;
	struct run_res *res = t->res;
	struct run_top *last, *top;
	const struct stat *st = c->after.st_mode ? &c->after : &c->before;

	(void)e;
	early_note(t->early, c);
	if (!change_counts(c))
		return 0;
	change_totals_add(&res->totals, c);
	if (t->brief && change_total(&res->totals) > HOUSEKEEP_FEW && res->ntops)
		return early_is_late(t->early);
	if (res->npaths < t->list)
		list_path(res, c);
	if (c->implied) {
		uint64_t file = !S_ISDIR(st->st_mode);

		last = res->ntops && res->ntops <= RUN_TOPS ? &res->tops[res->ntops - 1]
							    : NULL;
		if (last && strncmp(last->path, c->path, strlen(last->path)) == 0 &&
		    c->path[strlen(last->path)] == '/')
			last->below += file;
		else
			t->before += file;
		return 0;
	}
	if (res->ntops++ < RUN_TOPS) {
		top = &res->tops[res->ntops - 1];
		top->letter = change_letter_alone(c);
		top->path = xstrdup(c->path);
		top->dir = S_ISDIR(st->st_mode);
		top->below = t->before;
		top->hidden = c->was_hidden && c->before.st_mode;
	}
	t->before = 0;
	return 0;
}

static int sum_up(const struct txn_record *rec, const struct run_decision *d,
		  struct run_res *res, struct err *e)
{
	struct tally t = { .res = res, .list = d->list, .brief = d->brief };
	struct txn_sides s;
	int r = txn_sides_open(rec, &s, e);

	t.early = early_begin(rec);
	for (size_t i = 0; i < s.n; i++)
		s.v[i].every = true;
	/* A large file that was merely touched may be counted here; status and diff read it. */
	for (size_t i = 0; i < s.n; i++)
		s.v[i].rough = true;
	if (r == 0)
		r = change_walk(s.v, s.n, tally, &t, e);
	early_end(t.early, r == 0);
	txn_sides_close(&s);
	return r < 0 ? r : 0;
}

/* A refused commit is no failure of the run: the transaction is pending; res->refusal says why. */
static void commit(struct home *h, struct txn *t, const struct op_ctx *ctx,
		   const struct run_decision *d, struct run_res *res)
{
	struct diff_rules rules;
	const struct commit_wish w = {
		.judge = diff_judge,
		.judge_arg = &rules,
		.accept_risky = d->accept_risky,
		.progress = ctx->progress,
		.progress_arg = ctx->progress_arg,
	};

	/* It was decided before the command was started. */
	diff_rules_open(&rules, ctx, d->policy, t->rec.workspace, true);
	if (txn_commit(h, t, &w, &res->commit, &res->refusal) == 0 &&
	    inplace_keep(h, t, &res->refusal) >= 0)
		res->fate = RUN_COMMITTED;
	else if (!res->refusal.kind)
		res->refusal.kind = ERR_SYSTEM;
	diff_rules_close(&rules);
	if (res->fate == RUN_COMMITTED)
		housekeep_commit(h, t, &res->commit);
}

/* Could the command change the host where nothing is captured? Then the record has to stay. */
static bool wrote_through(const struct txn_record *r)
{
	for (size_t i = 0; i < r->neffects; i++)
		if (strcmp(r->effects[i].kind, "write-through") == 0 ||
		    strcmp(r->effects[i].kind, "socket") == 0)
			return true;
	return false;
}

/* Rolls back. If somebody has changed the same paths meanwhile, the transaction stays pending. */
static int give_up(struct home *h, struct txn *t, struct err *e)
{
	struct give_up g = { 0 };
	int r = txn_give_up(h, t, &g, e);

	path_notes_free(&g.conflicts);
	return r;
}

/* Records the end, and does with the transaction what was decided or its emptiness asks. */
static int settle(struct op_ctx *ctx, struct home *h, struct txn *t,
		  const struct run_decision *d, struct run_res *res, struct err *e)
{
	const char *reason = run_reason_name(res->run.reason);
	int action = d->action;

	if (res->run.reason == RUN_POLICY)
		action = RUN_ACTION_ROLLBACK; /* whatever the options say */
	res->decided = action != RUN_ACTION_NONE;
	if (!res->ntops && !wrote_through(&t->rec) && inplace_has_end(t) &&
	    (action == RUN_ACTION_NONE || action == RUN_ACTION_COMMIT ||
	     (d->all_or_nothing && action == RUN_ACTION_ROLLBACK))) {
		if (d->all_or_nothing || !timeline_worth(h, t->rec.id)) {
			res->fate = RUN_DROPPED;
			return txn_discard(h, t, res->run.status, reason, e);
		}
		res->in_between = true;
		action = RUN_ACTION_NONE;
	}
	res->fate = RUN_PENDING;
	if (txn_end(h, t, res->run.status, reason, e) < 0)
		return -1;
	if (action == RUN_ACTION_COMMIT)
		commit(h, t, ctx, d, res);
	if (d->all_or_nothing && res->refusal.kind && t->rec.state == TXN_FROZEN)
		action = RUN_ACTION_ROLLBACK;
	if (action != RUN_ACTION_ROLLBACK)
		return 0;
	res->fate = RUN_ROLLED_BACK;
	return give_up(h, t, e);
}

void run_res_free(struct run_res *r)
{
	size_t i;

	for (i = 0; i < r->ntops && i < RUN_TOPS; i++)
		free(r->tops[i].path);
	for (i = 0; i < r->npaths; i++)
		free(r->paths[i].path);
	free(r->paths);
	free(r->not_copied);
	commit_result_free(&r->commit);
	txn_facts_free(&r->txn);
}

/* Finds an object that the command could not have written: all the kernel says is EOVERFLOW. */
static char *find_not_copied(const struct txn_record *rec)
{
	const struct layer_record *in = NULL;
	AUTO_FREE char *upper = NULL;

	for (size_t i = 0; i < rec->nlayers; i++) {
		const struct layer_record *l = &rec->layers[i];

		if (l->kind == LAYER_OVERLAY && path_within(rec->workspace, l->host) &&
		    (!in || strlen(l->host) > strlen(in->host)))
			in = l;
	}
	if (!in || !in->lax_owner)
		return NULL;
	upper = xasprintf("%s/up", in->dir);
	return layer_left_foreign(in->host, upper, rec->workspace);
}

static void run_free(void *res)
{
	run_res_free(res);
}

int run_conclude(struct op_ctx *ctx, struct home *h, struct txn *t,
		 const struct run_decision *d, struct run_res *res, struct err *e)
{
	struct err second;
	int r;

	inplace_end(t);
	/* A rollback that the command's end has cut in two is taken back first. */
	r = timeline_settle(h, t, e);
	if (r == 0)
		r = sum_up(&t->rec, d, res, e);
	if (r == 0 && res->run.reason == RUN_EXIT && res->run.status && !d->brief)
		res->not_copied = find_not_copied(&t->rec);
	if (r == 0)
		r = settle(ctx, h, t, d, res, e);
	else if (txn_end(h, t, res->run.status, run_reason_name(res->run.reason),
			 &second) == 0 &&
		 (d->all_or_nothing || d->action == RUN_ACTION_ROLLBACK ||
		  res->run.reason == RUN_POLICY))
		give_up(h, t, &second); /* what was decided needs no summary */
	if (r == 0)
		housekeep(h, res->fate == RUN_PENDING ? t : NULL,
			  change_total(&res->totals));
	/* The record goes on to the result, with the state it has now. */
	res->txn.rec = t->rec;
	memset(&t->rec, 0, sizeof(t->rec));
	if (r < 0) {
		err_wrap(e, "the command ended with status %d, but t%lld",
			 res->run.status, (long long)res->txn.rec.id);
		run_res_free(res);
	}
	return r;
}

/* The command itself, in a transaction that is prepared. */
int run_execute(struct op_ctx *ctx, struct sandbox *sb, const struct run_req *rq,
		struct run_res *res, struct err *e)
{
	struct run_spec spec = {
		.argv = rq->argv,
		.limits = limits_of(&rq->limits, sb->judge.policy),
		.want_tty = true,
		.umask = ctx->umask,
	};
	char **env = sandbox_env(ctx, sb->judge.policy, &rq->sandbox, INT64_MAX);
	struct run_decision d = { .accept_risky = rq->accept_risky,
				  .policy = sb->judge.policy,
				  .brief = rq->common.quiet && !rq->common.json };
	int r;

	spec.envp = env;
	r = sandbox_run(sb, &spec, &res->run, e);
	strv_free(env);
	observer_end(&sb->observer);
	if (r < 0)
		return r;
	d.action = res->run.reason == RUN_EXIT && res->run.status == 0 ? rq->on_success
								       : rq->on_failure;
	r = run_conclude(ctx, sb->h, &sb->t, &d, res, e);
	res->project = sb->policy.project;
	snprintf(res->no_point, sizeof(res->no_point), "%s", sb->judge.no_point);
	return r;
}

/* When checkpoints are made; those before what is risky always, unless there are none. */
static int parse_points(const char *text, struct sandbox_ask *ask, struct err *e)
{
	static const int kinds[] = { POINTS_CALLS, POINTS_RISKY, POINTS_NONE };

	ask->points = POINTS_CALLS + 1;
	for (size_t i = 0; text && points[i]; i++)
		if (strcmp(text, points[i]) == 0) {
			ask->points = kinds[i] + 1;
			return 0;
		}
	if (!text)
		return 0;
	ask->points = POINTS_RISKY + 1;
	if (text_parse_duration(text, &ask->every_ms) == 0 && ask->every_ms > 0)
		return 0;
	err_set(e, ERR_USAGE,
		"--checkpoint: '%s' is not every-call, risky, none or a time such as 30s",
		text);
	return err_hint(e, "see: stet help run");
}

static int parse_backend(const struct run_req *rq, struct sandbox_ask *ask, struct err *e)
{
	ask->in_place = rq->backend == 2;
	if (!ask->in_place)
		return 0;
	if (rq->checkpoint && strcmp(rq->checkpoint, "none") != 0) {
		err_set(e, ERR_USAGE,
			"--backend btrfs has a snapshot and no checkpoints");
		return err_hint(e, "leave --checkpoint out");
	}
	ask->points = POINTS_NONE + 1;
	return 0;
}

/*
 * Fails before anything was executed, or when the end of the command could not be recorded or
 * summed up; the message says what is left then.
 */
static int op_run(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct run_req *rq = req;
	struct sandbox_ask ask = {
		.workspace = rq->sandbox.workspace,
		.name = rq->name,
		.argv = rq->argv,
		.host_tmp = rq->tmp == 2,
		.read_only = rq->read_only,
		.write_through = rq->write_through,
		.hide = rq->sandbox.hide,
		.sockets = rq->sandbox.sockets,
		.offline = rq->sandbox.no_network,
		.ask_socket = rq->ask == 2,
		.headless = rq->ask == 3,
		.policy = rq->sandbox.policy,
		.no_policy = rq->sandbox.no_policy,
	};
	struct sandbox sb;
	int r;

	if ((rq->name && run_check_name(rq->name, e) < 0) ||
	    parse_points(rq->checkpoint, &ask, e) < 0 || parse_backend(rq, &ask, e) < 0 ||
	    sandbox_env_check(rq->sandbox.env, e) < 0 ||
	    sandbox_open(c->ctx, &ask, &sb, e) < 0)
		return -1;
	r = run_execute(c->ctx, &sb, rq, result, e);
	sandbox_close(&sb);
	return r;
}

const char *run_fate_name(enum run_fate f)
{
	static const char *const names[] = {
		[RUN_PENDING] = "pending",
		[RUN_COMMITTED] = "committed",
		[RUN_ROLLED_BACK] = "rolled back",
		[RUN_DROPPED] = "dropped",
	};

	return names[f];
}

/* --- rows about a struct run_result --- */

static bool is_limit(const void *at)
{
	return ((const struct run_result *)at)->reason == RUN_LIMIT;
}

static const char *reason(const void *at)
{
	return run_reason_name(((const struct run_result *)at)->reason);
}

static const char *not_executed(const void *at)
{
	const struct run_result *r = at;

	return r->exec_errno ? strerror(r->exec_errno) : NULL;
}

#define RUN(field) offsetof(struct run_result, field)

const struct field run_end_fields[] = {
	{ "exit", FIELD_INT, RUN(status), "exit status, as a shell sees it" },
	{ "reason", FIELD_STRING, 0, "why the command ended: exit, signal, timeout, …",
	  .word = reason },
	{ NULL },
};

const struct field run_limit_fields[] = {
	{ "limit", FIELD_OBJECT, RUN(hit), "that was passed", .fields = limit_fields,
	  .present = is_limit },
	{ NULL },
};

static bool is_not_executed(const void *at)
{
	return ((const struct run_result *)at)->exec_errno;
}

const struct field run_exec_fields[] = {
	{ "not_executed", FIELD_STRING, 0, "why it could not be executed",
	  .present = is_not_executed, .word = not_executed },
	{ NULL },
};

static bool is_output_lost(const void *at)
{
	return ((const struct run_result *)at)->lost_errno;
}

static const char *output_lost(const void *at)
{
	return strerror(((const struct run_result *)at)->lost_errno);
}

const struct field run_lost_fields[] = {
	{ "output_lost", FIELD_STRING, 0, "why output could not be passed on",
	  .present = is_output_lost, .word = output_lost },
	{ NULL },
};

/* --- rows about a struct run_res --- */

static const char *fate(const void *at)
{
	return run_fate_name(((const struct run_res *)at)->fate);
}

static bool is_by_policy(const void *at)
{
	return ((const struct run_res *)at)->run.reason == RUN_POLICY;
}

static bool is_committed(const void *at)
{
	return ((const struct run_res *)at)->fate == RUN_COMMITTED;
}

static bool is_refused(const void *at)
{
	return ((const struct run_res *)at)->refusal.kind;
}

static bool has_error(const void *at)
{
	return is_refused(at) || ((const struct run_res *)at)->run.reason == RUN_ERROR;
}

/* Why a commit was refused or else, if the sandbox ended before the command did, why. */
static json_t *error(const void *at)
{
	const struct run_res *res = at;
	json_t *o = schema_write(error_fields,
				 is_refused(at) ? &res->refusal : &res->run.trouble);

	if (is_refused(at))
		schema_add(o, refused_fields, &res->commit);
	return o;
}

#define RES(field) offsetof(struct run_res, field)

static const struct field run_error_fields[] = {
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, error_fields },
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, refused_fields },
	{ NULL },
};

const struct field run_not_copied_fields[] = {
	{ "not_copied", FIELD_STRING, RES(not_copied),
	  "an object of another owner that the command could not write", FIELD_IF_SET },
	{ NULL },
};

const struct field run_op_fields[] = {
	{ "op", FIELD_INT64, RES(commit.op), "number of the commit",
	  .present = is_committed },
	{ NULL },
};

const struct field run_refusal_fields[] = {
	{ "error", FIELD_OBJECT, 0, "why the commit was refused",
	  .fields = run_error_fields, .present = is_refused, .make = error },
	{ NULL },
};

const struct field run_fate_fields[] = {
	{ "fate", FIELD_STRING, 0, "pending, committed, rolled back or dropped",
	  .word = fate },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_end_fields },
	{ "rule", FIELD_TEXT, RES(run.gate.rule), "that ended the command",
	  .present = is_by_policy },
	{ "", FIELD_OBJECT, RES(project), "", FIELD_FLAT, project_fields },
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, run_not_copied_fields },
	{ "changes", FIELD_OBJECT, RES(totals), "of the command",
	  .fields = totals_fields },
	{ "setup_us", FIELD_INT64, RES(run.setup_us), "making the sandbox" },
	{ "run_us", FIELD_INT64, RES(run.run_us), "the command itself" },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_limit_fields },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_exec_fields },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_lost_fields },
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, run_op_fields },
	{ "error", FIELD_OBJECT, 0,
	  "why the commit was refused, or why the sandbox ended",
	  .fields = run_error_fields, .present = has_error, .make = error },
	{ NULL },
};

static const struct field run_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, run_fate_fields },
	{ NULL },
};

int run_status(const void *req, const void *res)
{
	const struct run_res *rr = res;

	(void)req;
	return rr->refusal.kind ? RUN_STATUS_AROUND : rr->run.status;
}

const struct verb verb_run = {
	.name = "run",
	.summary = "run a command in a new transaction",
	.description =
		"Runs COMMAND with everything it writes kept in a transaction: files, deletions, "
		"renames and permissions, by it and by all that it starts. The host's files stay "
		"as they are. When the command ends, a summary on standard error says what it "
		"did; on a terminal you are asked what to do with it.\n"
		"\n"
		"Standard input, output and error are the command's own. On a terminal it has "
		"a terminal of its own. Processes that it leaves behind are ended with it.\n"
		"\n"
		"Checkpoints are made before each process that the agent itself starts and "
		"before what a rule calls risky, if anything has changed since the last one; "
		"calls that follow each other within a twentieth of a second count as one, of many "
		"that follow each other without a pause, as in a build, fewer and fewer have one, "
		"and in the long run they take no more than a fiftieth of the time. The agent is "
		"COMMAND, or what it stands for: what npx, uvx, timeout and their like start, "
		"what a script hands its arguments to, the same program started once more. Each "
		"is named by what says most of what starts before the next change: what a rule "
		"found risky, else what a shell was told to do, else the program. "
		"With --checkpoint risky only those that a rule "
		"asks for are made; with a time, these and one after each such time; with none, "
		"none. See stet log. Inside, stet checkpoint, log, status, diff, show, restore and "
		"rollback --to are about the transaction itself; it can decide nothing there.\n"
		"\n"
		"With --backend btrfs the workspace is not captured: COMMAND works on the real "
		"tree, of which a snapshot is made first. It must be a btrfs subvolume of your "
		"own, and others nested in it must be --read-only. "
		"stet status and diff compare with the snapshot, stet rollback makes what "
		"the run changed what it was, and leaves what others did since it ended; a commit "
		"only lets the snapshot go. What lies elsewhere is "
		"captured as always. There are no checkpoints, and a rollback cannot be undone.\n"
		"\n"
		"A transaction in which nothing was changed is dropped, unless --on-success or "
		"--on-failure says keep.\n"
		"\n" LIMIT_TEXT "\n"
		"\n"
		"The exit status is the command's: 128+N if signal N ended it, 124 after "
		"--timeout, 126 if it cannot be executed, 127 if it is not found, 125 if the "
		"sandbox could not be made (then nothing was executed) or if --on-success commit "
		"was refused (then the transaction is pending). With --json the result is the "
		"last line of standard error, a line of its own; --json-fd and --json-file "
		"have it elsewhere, so that standard error is the command's alone.\n"
		"\n"
		"  stet run -- make test\n"
		"  stet run --on-success commit --on-failure rollback -- ./migrate.sh\n"
		"  stet run --hide ~/.ssh --write-through ~/.cache -- bash",
	.opts = opts,
	.args = args,
	.request_size = sizeof(struct run_req),
	.effect = EFFECT_RUNS,
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_run,
	.result_size = sizeof(struct run_res),
	.result = run_fields,
	.status = run_status,
	.free = run_free,
};
