/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/exec.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/call.h"
#include "call/json.h"
#include "gate/caller_side.h"
#include "review/commit.h"
#include "session/sandbox.h"
#include "txn/end.h"

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

/* Subtracts what a command has used from the limits of the next ones. 0 would mean no limit: 1. */
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

/* The hint of a refused commit does not hold here: the transaction is rolled back by now. */
static void advise(struct run_res *run)
{
	long long id = run->txn.rec.id;

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

/* After a failure of our own: rolls back, unless --keep-on-failure; the caller reports why. */
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

/*
 * One call as one transaction: the command, then the checks in what the command left, then a
 * commit. If anything of that does not succeed, everything is rolled back; the result says what.
 * Fails only if nothing was executed, or if the end could not be recorded: then the next verb
 * rolls the transaction back.
 */
static int op_exec(struct verb_call *v, const void *req, void *result, struct err *e)
{
	const struct exec_req *rq = req;
	struct exec_res *res = result;
	struct call c = { .ctx = v->ctx, .rq = rq, .res = res };
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
	    sandbox_open(v->ctx, &ask, &c.sb, e) < 0)
		return -1;
	c.left = limits_of(&rq->limits, c.sb.judge.policy);
	c.env = sandbox_env(v->ctx, c.sb.judge.policy, &rq->sandbox, INT64_MAX);
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

/* --- rows about a struct run_result --- */

static bool is_signal(const void *at)
{
	return ((const struct run_result *)at)->reason == RUN_SIGNAL;
}

#define RUN(field) offsetof(struct run_result, field)

static const struct field status_fields[] = {
	{ "exit", FIELD_INT, RUN(status), "exit status, as a shell sees it" },
	{ "signal", FIELD_INT, RUN(signal), "that ended it", .present = is_signal },
	{ NULL },
};

static const struct field failure_fields[] = {
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, run_exec_fields },
	{ "no_directory", FIELD_BOOL, RUN(no_cwd), "its working directory was gone",
	  FIELD_IF_SET },
	{ NULL },
};

/* --- a check, a verdict, a changed path --- */

static json_t *is_ok(const void *at)
{
	return json_boolean(succeeded(&((const struct exec_check *)at)->run));
}

#define CHECK(field) offsetof(struct exec_check, field)

static const struct field check_fields[] = {
	{ "command", FIELD_STRING, CHECK(command), "as it was given" },
	{ "ok", FIELD_BOOL, 0, "it succeeded", .make = is_ok },
	{ "", FIELD_OBJECT, CHECK(run), "", FIELD_FLAT, status_fields },
	{ "", FIELD_OBJECT, CHECK(run), "", FIELD_FLAT, run_limit_fields },
	{ "", FIELD_OBJECT, CHECK(run), "", FIELD_FLAT, failure_fields },
	{ "duration_ms", FIELD_KILO, CHECK(run.run_us), "of the check" },
	{ "", FIELD_OBJECT, CHECK(output), "", FIELD_FLAT, capture_fields },
	{ NULL },
};

static const char *verdict(const void *at)
{
	return verdict_name(((const struct judged *)at)->verdict);
}

static const char *outcome(const void *at)
{
	return exec_outcome_name(((const struct judged *)at)->outcome);
}

static json_t *argv(const void *at)
{
	const struct judged *k = at;
	json_t *a = json_array();

	for (size_t n = 0; k->argv && k->argv[n]; n++)
		json_array_append_new(a, json_pack_bytes(k->argv[n]));
	return a;
}

#define JUDGED(field) offsetof(struct judged, field)

static const struct field verdict_fields[] = {
	{ "verdict", FIELD_STRING, 0, "checkpoint, ask, deny or kill", .word = verdict },
	{ "outcome", FIELD_STRING, 0, "what became of the command", .word = outcome },
	{ "rule", FIELD_STRING, JUDGED(rule), "that decided", FIELD_CAN_NULL },
	{ "why", FIELD_STRING, JUDGED(why), "its reason", FIELD_CAN_NULL },
	{ "hint", FIELD_STRING, JUDGED(hint), "what to do instead", FIELD_CAN_NULL },
	{ "argv", FIELD_STRINGS, 0, "secrets are covered; {\"b64\"} if it is not UTF-8",
	  .make = argv },
	{ NULL },
};

static json_t *letter(const void *at)
{
	const char text[2] = { (char)((const struct run_path *)at)->kind, 0 };

	return json_string(text);
}

static const struct field path_fields[] = {
	{ "kind", FIELD_STRING, 0, "A added, M changed, D deleted, T type",
	  .make = letter },
	{ "path", FIELD_STRING, offsetof(struct run_path, path), "absolute" },
	{ NULL },
};

static int exec_status(const void *req, const void *result)
{
	const struct exec_res *res = result;

	(void)req;
	return res->run.refusal.kind ? RUN_STATUS_AROUND : res->run.run.status;
}

static json_t *is_done(const void *at)
{
	return json_boolean(((const struct exec_res *)at)->reason == EXEC_DONE);
}

static const char *reason(const void *at)
{
	return exec_reason_name(((const struct exec_res *)at)->reason);
}

static const char *fate(const void *at)
{
	return run_fate_name(((const struct exec_res *)at)->run.fate);
}

static json_t *status(const void *at)
{
	return json_integer(exec_status(NULL, at));
}

/* By the command or by a check. */
static const struct limit_hit *limit(const struct exec_res *res)
{
	return res->reason == EXEC_LIMIT	  ? &res->run.run.hit
	       : res->command.reason == RUN_LIMIT ? &res->command.hit
						  : NULL;
}

static bool has_limit(const void *at)
{
	return limit(at);
}

static json_t *limit_json(const void *at)
{
	return schema_write(limit_fields, limit(at));
}

static bool is_cut(const void *at)
{
	const struct exec_res *res = at;

	return change_total(&res->run.totals) > res->run.npaths;
}

static json_t *yes(const void *at)
{
	(void)at;
	return json_true();
}

#define RES(field) offsetof(struct exec_res, field)

static const struct field exec_fields[] = {
	FIELD_OF_TXN(RES(run.txn)),
	{ "ok", FIELD_BOOL, 0, "it was committed, or nothing was to commit",
	  .make = is_done },
	{ "reason", FIELD_STRING, 0, "see above", .word = reason },
	{ "", FIELD_OBJECT, RES(run.project), "", FIELD_FLAT, project_fields },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_not_copied_fields },
	{ "fate", FIELD_STRING, 0, "pending, committed, rolled back or dropped",
	  .word = fate },
	{ "status", FIELD_INT, 0, "exit status of stet", .make = status },
	{ "", FIELD_OBJECT, RES(command), "", FIELD_FLAT, status_fields },
	{ "limit", FIELD_OBJECT, 0, "that was passed", .fields = limit_fields,
	  .present = has_limit, .make = limit_json },
	{ "", FIELD_OBJECT, RES(command), "", FIELD_FLAT, failure_fields },
	{ "execs", FIELD_UINT64, RES(execs), "commands that were executed" },
	{ "verdicts", FIELD_LIST, RES(verdicts), "of what was not simply allowed",
	  .fields = verdict_fields, .count = RES(nverdicts),
	  .stride = sizeof(struct judged) },
	{ "checks", FIELD_LIST, RES(checks), "those that were run",
	  .fields = check_fields, .count = RES(nchecks),
	  .stride = sizeof(struct exec_check) },
	{ "duration_ms", FIELD_KILO, RES(command.run_us), "of the command" },
	{ "total_ms", FIELD_KILO, RES(total_us), "of the whole call" },
	{ "overhead_ms", FIELD_KILO, RES(overhead_us),
	  "of the whole call, without command and checks" },
	{ "cpu_ms", FIELD_KILO, RES(command.cpu_us), "of the command" },
	{ "totals", FIELD_OBJECT, RES(run.totals), "of the changes",
	  .fields = totals_fields },
	{ "changes", FIELD_LIST, RES(run.paths), "one by one", .fields = path_fields,
	  .count = RES(run.npaths), .stride = sizeof(struct run_path) },
	{ "changes_cut", FIELD_BOOL, 0, "there are more", .present = is_cut,
	  .make = yes },
	{ "", FIELD_OBJECT, RES(output), "", FIELD_FLAT, capture_fields },
	{ "", FIELD_OBJECT, RES(command), "", FIELD_FLAT, run_lost_fields },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_op_fields },
	{ "", FIELD_OBJECT, RES(run), "", FIELD_FLAT, run_refusal_fields },
	{ NULL },
};

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
	.request_size = sizeof(struct exec_req),
	.effect = EFFECT_RUNS,
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON | VERB_QUIET | VERB_CAPTURES | VERB_TXN_FIRST,
	.run = op_exec,
	.result_size = sizeof(struct exec_res),
	.result = exec_fields,
	.status = exec_status,
	.free = exec_free,
};
