/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/exec.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "gate/caller_side.h"
#include "session/json.h"
#include "session/sandbox.h"
#include "txn/end.h"
#include "verbs/commit.h"

enum {
	OUTPUT_DEFAULT = 64 * 1024,
	PATHS_MAX = 1000,
	GRACE_MS = 500, /* a call that is late is not waited for longer than this */
};

#define AT(field) offsetof(struct exec_req, field)

static const char *const askers[] = { "nobody", "socket", NULL };

static const struct verb_opt opts[] = {
	{ "check", 'c', OPT_LIST, "COMMAND",
	  "commit only if this shell command succeeds afterwards; repeatable", AT(checks),
	  NULL, ARG_WORD },
	SANDBOX_ROWS(AT(sandbox)),
	LIMIT_ROWS(AT(limits)),
	{ "output", 0, OPT_SIZE, "SIZE",
	  "how much of each output stream the result holds (default 64K)", AT(output) },
	{ "keep-on-failure", 0, OPT_FLAG, NULL,
	  "leave the transaction pending if it is not committed", AT(keep_on_failure) },
	{ "accept-risky", 0, OPT_FLAG, NULL, "commit what deserves a look, too",
	  AT(accept_risky) },
	{ "ask", 0, OPT_CHOICE, "WHO",
	  "who answers what a rule asks: nobody (default), socket (stet consent)",
	  AT(ask), askers, ARG_CHOICE },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "COMMAND", ARG_COMMAND, true, true, AT(argv) },
	{ NULL },
};

const char *exec_reason_name(enum exec_reason r)
{
	static const char *const names[] = {
		[EXEC_DONE] = "done",	      [EXEC_EXIT] = "exit",
		[EXEC_SIGNAL] = "signal",     [EXEC_NOT_EXECUTED] = "not executed",
		[EXEC_CHECK] = "check",	      [EXEC_TIMEOUT] = "timeout",
		[EXEC_LIMIT] = "limit",	      [EXEC_POLICY] = "policy",
		[EXEC_CONFLICT] = "conflict", [EXEC_ERROR] = "error",
	};

	return names[r];
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* One call from its beginning to its end. */
struct call {
	struct op_ctx *ctx;
	const struct exec_req *rq;
	struct exec_res *res;
	struct sandbox sb;
	struct run_limits left; /* of time, CPU time and output: what is not used up */
	char **env;
};

/* Takes what a command has used from what those after it may use: 1 is as good as nothing. */
static void use_up(struct run_limits *left, const struct run_result *r)
{
	int64_t ms = (r->setup_us + r->run_us) / 1000;

	if (left->wall_ms)
		left->wall_ms = left->wall_ms > ms ? left->wall_ms - ms : 1;
	if (left->cpu_ms)
		left->cpu_ms = left->cpu_ms > r->cpu_us / 1000
				       ? left->cpu_ms - r->cpu_us / 1000
				       : 1;
	if (left->output)
		left->output = left->output > r->output ? left->output - r->output : 1;
}

/* With JSON the output goes to the result; without, where ours goes. */
static int run_one(struct call *c, char *const *argv, bool check, const char *name,
		   struct run_result *run, struct capture *out, struct err *e)
{
	static const int to_stderr[2] = { 2, 2 };
	const struct exec_req *rq = c->rq;
	struct run_spec spec = { .argv = argv,
				 .envp = c->env,
				 .umask = c->ctx->umask,
				 .cwd_rule = check ? CWD_OR_NOT_RUN : CWD_NEEDED,
				 .limits = c->left,
				 .grace_ms = GRACE_MS,
				 .no_input = check,
				 .out = check ? to_stderr : NULL };
	AUTO_FREE char *file = NULL;
	int r;

	if (rq->common.json) {
		if (capture_open(c->sb.h, out, e) < 0)
			return -1;
		spec.out = out->fd;
	}
	r = sandbox_run(&c->sb, &spec, run, e);
	if (r == 0 && run->reason == RUN_ERROR) {
		*e = run->trouble;
		r = -1;
	}
	if (r == 0)
		use_up(&c->left, run);
	if (r == 0 && rq->common.json) {
		file = xasprintf("t%lld%s", (long long)c->sb.t.rec.id, name);
		r = capture_end(c->sb.h, out, rq->output ? rq->output : OUTPUT_DEFAULT,
				file, e);
	}
	if (r < 0 && rq->common.json)
		capture_free(out);
	return r;
}

static bool succeeded(const struct run_result *r)
{
	return r->reason == RUN_EXIT && r->status == 0;
}

/* @denied: a rule has refused something. */
static enum exec_reason why(const struct run_result *r, bool check, bool denied)
{
	if (succeeded(r))
		return EXEC_DONE;
	if (r->reason == RUN_TIMEOUT)
		return EXEC_TIMEOUT;
	if (r->reason == RUN_LIMIT)
		return EXEC_LIMIT;
	if (r->reason == RUN_POLICY || (r->exec_errno == EPERM && denied))
		return EXEC_POLICY;
	if (check)
		return EXEC_CHECK;
	if (r->exec_errno)
		return EXEC_NOT_EXECUTED;
	return r->reason == RUN_SIGNAL ? EXEC_SIGNAL : EXEC_EXIT;
}

static bool was_denied(const struct judge *j)
{
	for (size_t i = 0; i < j->nseen; i++)
		if (j->seen[i].outcome == EXEC_DENIED)
			return true;
	return false;
}

/* The checks, until one does not succeed. */
static int run_checks(struct call *c, struct err *e)
{
	char sh[] = "/bin/sh", dash_c[] = "-c";
	struct exec_res *res = c->res;
	size_t n = strv_len(c->rq->checks);

	res->checks = xcalloc(n + 1, sizeof(*res->checks));
	while (res->nchecks < n && res->reason == EXEC_DONE) {
		struct exec_check *k = &res->checks[res->nchecks];
		char *argv[] = { sh, dash_c, c->rq->checks[res->nchecks], NULL };
		AUTO_FREE char *name = xasprintf(".check%zu", res->nchecks + 1);

		k->command = argv[2];
		if (run_one(c, argv, true, name, &k->run, &k->output, e) < 0)
			return err_wrap(e, "check %zu", res->nchecks + 1);
		res->nchecks++;
		res->run.run = k->run;
		res->reason = why(&k->run, true, false);
	}
	return 0;
}

static enum exec_reason refused(const struct err *e)
{
	return e->kind == ERR_CONFLICT ? EXEC_CONFLICT
	       : e->kind == ERR_DENIED ? EXEC_POLICY
				       : EXEC_ERROR;
}

static void exec_free(void *result)
{
	struct exec_res *res = result;

	for (size_t i = 0; i < res->nchecks; i++)
		capture_free(&res->checks[i].output);
	free(res->checks);
	judged_free(res->verdicts, res->nverdicts);
	capture_free(&res->output);
	run_res_free(&res->run);
}

/* A commit would have said what to do next; but what there was is rolled back by now. */
static void advise(struct run_res *run)
{
	long long id = run->rec.id;

	if (run->refusal.kind == ERR_DENIED && run->commit.risks.n &&
	    !run->commit.denied.n)
		err_hint(
			&run->refusal,
			"to have them, too: stet exec --accept-risky; or stet undo t%lld, then "
			"stet diff t%lld, stet commit t%lld --accept-risky",
			id, id, id);
	else
		err_hint(
			&run->refusal,
			"stet undo t%lld makes it pending again; then: stet diff t%lld, stet "
			"commit t%lld",
			id, id, id);
}

static int decide(struct call *c, struct err *e)
{
	struct exec_res *res = c->res;
	bool keep = c->rq->keep_on_failure;
	const struct run_decision d = {
		.action = res->reason == EXEC_DONE ? RUN_ACTION_COMMIT
			  : keep		   ? RUN_ACTION_KEEP
						   : RUN_ACTION_ROLLBACK,
		.accept_risky = c->rq->accept_risky,
		.policy = c->sb.judge.policy,
		.all_or_nothing = !keep,
		.list = PATHS_MAX,
	};

	observer_end(&c->sb.observer);
	if (run_conclude(c->ctx, c->sb.h, &c->sb.t, &d, &res->run, e) < 0)
		return -1;
	if (res->run.refusal.kind)
		res->reason = refused(&res->run.refusal);
	if (res->run.refusal.kind && res->run.fate == RUN_ROLLED_BACK)
		advise(&res->run);
	return 0;
}

/* We failed in the middle of it: what there is goes, and the caller hears why. */
static void give_up(struct call *c)
{
	struct err ignored;

	if (c->sb.t.rec.id && txn_end(c->sb.h, &c->sb.t, 125, "error", &ignored) == 0 &&
	    !c->rq->keep_on_failure)
		txn_rollback(c->sb.h, &c->sb.t, &ignored);
}

static int call(struct call *c, struct err *e)
{
	struct exec_res *res = c->res;
	int r;

	r = run_one(c, c->rq->argv, false, "", &res->command, &res->output, e);
	if (r < 0) {
		/* Where nothing was executed, there is nothing any more. */
		if (res->command.reason == RUN_ERROR)
			give_up(c);
		return -1;
	}
	res->run.run = res->command;
	res->reason = why(&res->command, false, was_denied(&c->sb.judge));
	if (res->reason == EXEC_DONE)
		r = run_checks(c, e);
	if (r < 0) {
		give_up(c);
		return -1;
	}
	return decide(c, e);
}

static int64_t commands_us(const struct exec_res *res)
{
	int64_t sum = res->command.run_us;

	for (size_t i = 0; i < res->nchecks; i++)
		sum += res->checks[i].run.run_us;
	return sum;
}

int op_exec(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct exec_req *rq = req;
	struct exec_res *res = result;
	struct call c = { .ctx = ctx, .rq = rq, .res = res };
	const struct sandbox_ask ask = {
		.workspace = rq->sandbox.workspace,
		.argv = rq->argv,
		.hide = rq->sandbox.hide,
		.sockets = rq->sandbox.sockets,
		.offline = rq->sandbox.no_network,
		.atomic = !rq->keep_on_failure,
		.headless = true,
		.ask_socket = rq->ask == 2,
		.policy = rq->sandbox.policy,
		.no_policy = rq->sandbox.no_policy,
	};
	int64_t began = now_us();
	int r;

	if (sandbox_env_check(rq->sandbox.env, e) < 0 ||
	    sandbox_open(ctx, &ask, &c.sb, e) < 0)
		return -1;
	c.left = limits_of(&rq->limits, c.sb.judge.policy);
	c.env = sandbox_env(ctx, c.sb.judge.policy, &rq->sandbox, INT64_MAX);
	r = call(&c, e);
	strv_free(c.env);
	res->verdicts = TAKE_PTR(c.sb.judge.seen);
	res->nverdicts = c.sb.judge.nseen;
	res->execs = c.sb.judge.execs;
	res->run.project = c.sb.policy.project;
	c.sb.judge.nseen = 0;
	sandbox_close(&c.sb);
	if (r < 0) {
		exec_free(res);
		memset(res, 0, sizeof(*res));
		return -1;
	}
	res->total_us = now_us() - began;
	res->overhead_us = res->total_us - commands_us(res);
	return 0;
}

static void set_ms(json_t *o, const char *key, int64_t us)
{
	json_object_set_new(o, key, json_real((double)(us / 10) / 100));
}

static void set_run(json_t *o, const struct run_result *r)
{
	json_object_set_new(o, "exit", json_integer(r->status));
	if (r->reason == RUN_SIGNAL)
		json_object_set_new(o, "signal", json_integer(r->signal));
	if (r->reason == RUN_LIMIT)
		json_object_set_new(o, "limit", json_limit(&r->hit));
	if (r->exec_errno)
		json_set_str(o, "not_executed", strerror(r->exec_errno));
	if (r->no_cwd)
		json_object_set_new(o, "no_directory", json_true());
}

static json_t *checks_json(const struct exec_res *res)
{
	json_t *a = json_array();

	for (size_t i = 0; i < res->nchecks; i++) {
		const struct exec_check *k = &res->checks[i];
		json_t *o = json_object();

		json_set_str(o, "command", k->command);
		json_object_set_new(o, "ok", json_boolean(succeeded(&k->run)));
		set_run(o, &k->run);
		set_ms(o, "duration_ms", k->run.run_us);
		capture_json(&k->output, o);
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *verdicts_json(const struct exec_res *res)
{
	json_t *a = json_array();

	for (size_t i = 0; i < res->nverdicts; i++) {
		const struct judged *k = &res->verdicts[i];
		json_t *o = json_object(), *argv = json_array();

		json_set_str(o, "verdict", verdict_name(k->verdict));
		json_set_str(o, "outcome", exec_outcome_name(k->outcome));
		json_set_str(o, "rule", k->rule);
		json_set_str(o, "why", k->why);
		json_set_str(o, "hint", k->hint);
		for (size_t n = 0; k->argv && k->argv[n]; n++)
			json_array_append_new(argv, json_pack_bytes(k->argv[n]));
		json_object_set_new(o, "argv", argv);
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *paths_json(const struct run_res *run)
{
	json_t *a = json_array();

	for (size_t i = 0; i < run->npaths; i++) {
		const char letter[2] = { (char)run->paths[i].kind, 0 };
		json_t *o = json_object();

		json_object_set_new(o, "kind", json_string(letter));
		json_set_str(o, "path", run->paths[i].path);
		json_array_append_new(a, o);
	}
	return a;
}

static int exec_status(const void *req, const void *result)
{
	const struct exec_res *res = result;

	(void)req;
	return res->run.refusal.kind ? RUN_STATUS_AROUND : res->run.run.status;
}

static json_t *exec_json(const void *result)
{
	const struct exec_res *res = result;
	const struct run_res *run = &res->run;
	json_t *o = json_result(), *refusal;

	json_object_set_new(o, "txn", json_txn(&run->rec));
	json_object_set_new(o, "ok", json_boolean(res->reason == EXEC_DONE));
	json_object_set_new(o, "reason", json_string(exec_reason_name(res->reason)));
	json_set_project(o, res->run.project);
	json_set_not_copied(o, run);
	json_object_set_new(o, "fate", json_string(run_fate_name(run->fate)));
	json_object_set_new(o, "status", json_integer(exec_status(NULL, res)));
	set_run(o, &res->command);
	if (res->reason == EXEC_LIMIT)
		json_object_set_new(o, "limit", json_limit(&run->run.hit));
	json_object_set_new(o, "execs", json_integer((json_int_t)res->execs));
	json_object_set_new(o, "verdicts", verdicts_json(res));
	json_object_set_new(o, "checks", checks_json(res));
	set_ms(o, "duration_ms", res->command.run_us);
	set_ms(o, "total_ms", res->total_us);
	set_ms(o, "overhead_ms", res->overhead_us);
	set_ms(o, "cpu_ms", res->command.cpu_us);
	json_object_set_new(o, "totals", json_totals(&run->totals));
	json_object_set_new(o, "changes", paths_json(run));
	if (change_total(&run->totals) > run->npaths)
		json_object_set_new(o, "changes_cut", json_true());
	capture_json(&res->output, o);
	if (res->command.lost_errno)
		json_set_str(o, "output_lost", strerror(res->command.lost_errno));
	if (run->fate == RUN_COMMITTED)
		json_object_set_new(o, "op", json_integer(run->commit.op));
	if (run->refusal.kind) {
		refusal = json_error_detail(&run->refusal);
		commit_explain(&run->commit, refusal);
		json_object_set_new(o, "error", refusal);
	}
	return o;
}

const struct verb verb_exec = {
	.name = "exec",
	.summary = "run one command as an atomic transaction",
	.description =
		"Runs COMMAND in a new transaction and commits what it did, if it and every "
		"--check succeed. Otherwise nothing of it remains: after an exit status other "
		"than 0, a signal, a limit, a check that fails, changes that deserve a look, a "
		"conflict with what changed on the host meanwhile, or the end of stet itself, "
		"everything is rolled back. For programs: nothing is ever asked.\n"
		"\n"
		"As nobody sees the changes first, what was deleted or overwritten outside of the "
		"workspace deserves a look, too, caches and temporary files apart.\n"
		"\n"
		"Checks are run by /bin/sh, one after the other, in what COMMAND left; what "
		"they write is part of the transaction. If COMMAND took the working directory "
		"away, a check fails. Time, CPU time and output are limited for "
		"all of them together.\n"
		"\n"
		"Standard input is the command's own, and so are output and error, unless "
		"--json is given: then the result on standard output holds them, up to --output "
		"bytes of each, and names a file with the rest, which is kept for a week.\n"
		"\n" LIMIT_TEXT "\n"
		"\n"
		"The exit status is the command's, or that of the check that failed; 128+N if "
		"signal N ended it, 124 after --timeout, 126 or 127 if it cannot be executed, 125 "
		"if stet failed or the commit was refused. With --json, reason says why: done, "
		"exit, signal, not executed, check, timeout, limit, policy, conflict or error.\n"
		"\n"
		"  stet exec --check 'make test' --timeout 5m -- sed -i s/old/new/ src/a.c\n"
		"  stet exec --json --memory 2G --pids 200 -- npm install",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON | VERB_QUIET | VERB_RUNS | VERB_CAPTURES | VERB_ANYWHERE,
	.request_size = sizeof(struct exec_req),
	.result_size = sizeof(struct exec_res),
	.run = op_exec,
	.json = exec_json,
	.status = exec_status,
	.free = exec_free,
};
