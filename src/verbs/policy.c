/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/policy.h"
#include "policy/judge.h"
#include "policy/tests.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "session/json.h"
#include "verbs/run.h"

/* The policy of the current directory. */
static int load_here(struct op_ctx *ctx, struct op_policy *p, const char **cwd,
		     struct err *e)
{
	if (op_ctx_cwd(ctx, cwd, e) < 0)
		return -1;
	if (op_policy_load(ctx, *cwd, p, e) < 0) {
		op_policy_free(p);
		return -1;
	}
	return 0;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int op_policy_check(struct op_ctx *ctx, const void *req, void *result,
			   struct err *e)
{
	const struct policy_check_req *rq = req;
	struct policy_check_res *res = result;
	const char *home = op_ctx_env(ctx, "HOME"), *cwd;
	struct text_facts f;
	int64_t began;
	int r = 0;

	if (load_here(ctx, &res->policy, &cwd, e) < 0)
		return -1;
	f = (struct text_facts){ cwd, cwd, home };
	began = now_ns();
	if (rq->argv[1]) {
		/* As an exec it would be known what the program is; here it has a name. */
		struct exec_facts x = {
			.argv = (const char *const *)rq->argv,
			.argc = strv_len(rq->argv),
			.cwd = cwd,
			.workspace = cwd,
			.home = home,
			.ahead = true,
		};

		policy_judge_exec(res->policy.p, &x, &res->verdict);
	} else {
		res->text = xstrdup(rq->argv[0]);
		r = policy_judge_text(res->policy.p, res->text, strlen(res->text), &f,
				      &res->verdict, e);
	}
	res->judge_ns = now_ns() - began;
	if (r < 0) {
		free(res->text);
		op_policy_free(&res->policy);
	}
	return r;
}

static json_t *check_json(const void *result)
{
	const struct policy_check_res *res = result;
	const struct verdict *v = &res->verdict;
	json_t *o = json_result();

	json_object_set_new(o, "judge_us", json_real((double)(res->judge_ns / 10) / 100));

	json_set_str(o, "verdict", verdict_name(v->kind));
	json_set_str(o, "rule", v->rule);
	json_set_str(o, "why", v->why);
	json_set_str(o, "hint", v->hint);
	if (res->text && v->kind != VERDICT_ALLOW) {
		json_object_set_new(o, "from", json_integer((json_int_t)v->from));
		json_object_set_new(o, "to", json_integer((json_int_t)v->to));
	}
	json_set_str(o, "policy", policy_hash(res->policy.p));
	json_set_project(o, res->policy.project);
	return o;
}

static int check_status(const void *req, const void *result)
{
	const struct policy_check_res *res = result;

	(void)req;
	return res->verdict.kind >= VERDICT_ASK ? ERR_DENIED : 0;
}

static void check_free(void *result)
{
	struct policy_check_res *res = result;

	free(res->text);
	op_policy_free(&res->policy);
}

static const struct verb_arg check_args[] = {
	{ "COMMAND", ARG_COMMAND, true, true, offsetof(struct policy_check_req, argv) },
	{ NULL },
};

const struct verb verb_policy_check = {
	.name = "policy check",
	.summary = "say whether a command may run",
	.description =
		"Judges a command without running it, in the current directory. One word is "
		"shell text, which is parsed; several are a command and its arguments. Prints "
		"the verdict, the rule, why, and the place in the text.\n"
		"\n"
		"The verdict defer means that the text does not tell, as with scripts and "
		"variables: it is decided when the command is executed. The exit status is 0 "
		"for allow, defer and checkpoint, 2 otherwise.\n"
		"\n"
		"  stet policy check 'cd /; rm -rf *'\n"
		"  stet policy check -- git push --force",
	.args = check_args,
	.flags = VERB_JSON | VERB_COLOR | VERB_ANYWHERE,
	.request_size = sizeof(struct policy_check_req),
	.result_size = sizeof(struct policy_check_res),
	.run = op_policy_check,
	.json = check_json,
	.status = check_status,
	.free = check_free,
};

static int op_policy_show(struct op_ctx *ctx, const void *req, void *result,
			  struct err *e)
{
	struct policy_show_res *res = result;
	const char *cwd;

	(void)req;
	return load_here(ctx, &res->policy, &cwd, e);
}

static const char *project_word(enum project_policy p)
{
	static const char *const words[] = { NULL, "allowed", "waiting", "changed" };

	return words[p];
}

static json_t *rule_json(const struct policy_rule *r)
{
	json_t *o = json_object();

	json_set_str(o, "id", r->id);
	json_set_str(o, "verdict", verdict_name(r->verdict));
	json_set_str(o, "origin", conf_origin_name(r->origin));
	json_set_str(o, "group", r->group);
	json_object_set_new(o, "diff", json_boolean(r->diff));
	json_object_set_new(o, "off", json_boolean(r->off));
	json_set_str(o, "why", r->why);
	json_set_str(o, "hint", r->hint);
	return o;
}

static json_t *limits_json(const struct policy_limits *l)
{
	const struct {
		const char *name;
		int64_t value;
	} each[] = {
		{ "wall_ms", l->wall_ms },
		{ "cpu_ms", l->cpu_ms },
		{ "memory", (int64_t)l->memory },
		{ "disk", (int64_t)l->disk },
		{ "file", (int64_t)l->file },
		{ "output", (int64_t)l->output },
		{ "pids", l->pids },
		{ "files", l->files },
	};
	json_t *o = json_object();
	size_t i;

	for (i = 0; i < sizeof(each) / sizeof(each[0]); i++)
		if (each[i].value)
			json_object_set_new(o, each[i].name, json_integer(each[i].value));
	return o;
}

static json_t *show_json(const void *result)
{
	const struct op_policy *p = &((const struct policy_show_res *)result)->policy;
	json_t *o = json_result(), *rules = json_array(), *files = json_object();
	struct policy_rule r;
	size_t i;

	json_set_str(o, "policy", policy_hash(p->p));
	json_set_str(o, "default", verdict_name(policy_default(p->p)));
	for (i = 0; i < 3; i++)
		json_set_str(files, conf_origin_name((enum conf_origin)(i + 1)),
			     p->files[i]);
	json_object_set_new(o, "files", files);
	json_set_str(o, "project", project_word(p->project));
	json_set_project(o, p->project);
	json_object_set_new(o, "limits", limits_json(policy_limits(p->p)));
	for (i = 0; policy_rule_at(p->p, i, &r); i++)
		json_array_append_new(rules, rule_json(&r));
	json_object_set_new(o, "rules", rules);
	return o;
}

static void show_free(void *result)
{
	op_policy_free(&((struct policy_show_res *)result)->policy);
}

const struct verb verb_policy_show = {
	.name = "policy show",
	.summary = "show the rules in force here",
	.description =
		"Prints the policy that is in force in the current directory: its hash, the "
		"files it comes from, its limits, and every rule with its verdict and origin.",
	.flags = VERB_JSON | VERB_COLOR | VERB_ANYWHERE,
	.request_size = sizeof(struct policy_show_req),
	.result_size = sizeof(struct policy_show_res),
	.run = op_policy_show,
	.json = show_json,
	.free = show_free,
};

static void take_test(void *arg, const struct policy_test *t)
{
	struct policy_test_res *res = arg;
	struct policy_failure *f;

	res->run++;
	if (t->passed)
		return;
	res->failures = xrealloc(res->failures,
				 (res->failures_count + 1) * sizeof(*res->failures));
	f = &res->failures[res->failures_count++];
	f->rule = xstrdup(t->rule);
	f->text = xstrdup(t->text);
	f->want = t->is_hint ? "checkpoint at most" : verdict_name(t->want);
	f->got = verdict_name(t->got.kind);
}

static int op_policy_test(struct op_ctx *ctx, const void *req, void *result,
			  struct err *e)
{
	const struct policy_test_req *rq = req;
	struct policy_test_res *res = result;
	struct op_policy p;
	const char *cwd;
	int r;

	if (rq->file)
		r = op_policy_load_file(ctx, rq->file, &p, e);
	else
		r = load_here(ctx, &p, &cwd, e);
	if (r == 0)
		res->failed = policy_run_tests(p.p, rq->file ? CONF_USER : CONF_BUILTIN,
					       take_test, res);
	if (r == 0 || rq->file)
		op_policy_free(&p);
	return r;
}

static json_t *test_json(const void *result)
{
	const struct policy_test_res *res = result;
	json_t *o = json_result(), *a = json_array();
	size_t i;

	json_object_set_new(o, "run", json_integer((json_int_t)res->run));
	json_object_set_new(o, "failed", json_integer((json_int_t)res->failed));
	for (i = 0; i < res->failures_count; i++) {
		json_t *f = json_object();

		json_set_str(f, "rule", res->failures[i].rule);
		json_set_str(f, "text", res->failures[i].text);
		json_set_str(f, "want", res->failures[i].want);
		json_set_str(f, "got", res->failures[i].got);
		json_array_append_new(a, f);
	}
	json_object_set_new(o, "failures", a);
	return o;
}

static int test_status(const void *req, const void *result)
{
	(void)req;
	return ((const struct policy_test_res *)result)->failed ? ERR_USAGE : 0;
}

static void test_free(void *result)
{
	struct policy_test_res *res = result;
	size_t i;

	for (i = 0; i < res->failures_count; i++) {
		free(res->failures[i].rule);
		free(res->failures[i].text);
	}
	free(res->failures);
}

static const struct verb_arg test_args[] = {
	{ "FILE", ARG_PATH, false, false, offsetof(struct policy_test_req, file) },
	{ NULL },
};

const struct verb verb_policy_test = {
	.name = "policy test",
	.summary = "run the tests that stand in the rules",
	.description =
		"Runs the tests and hints of all rules in force here, or, with FILE, of the "
		"rules in that file, together with the built-in ones. A file that is no policy "
		"is refused with its line and the reason.",
	.args = test_args,
	.flags = VERB_JSON | VERB_ANYWHERE,
	.request_size = sizeof(struct policy_test_req),
	.result_size = sizeof(struct policy_test_res),
	.run = op_policy_test,
	.json = test_json,
	.status = test_status,
	.free = test_free,
};

static int op_policy_explain(struct op_ctx *ctx, const void *req, void *result,
			     struct err *e)
{
	const struct policy_explain_req *rq = req;
	struct policy_explain_res *res = result;
	const char *cwd;
	size_t i;

	if (load_here(ctx, &res->policy, &cwd, e) < 0)
		return -1;
	for (i = 0; policy_rule_at(res->policy.p, i, &res->rule); i++)
		if (strcmp(res->rule.id, rq->rule) == 0)
			break;
	res->text = policy_rule_text(res->policy.p, rq->rule);
	if (res->text)
		return 0;
	op_policy_free(&res->policy);
	err_set(e, ERR_USAGE, "no rule is called '%s'", rq->rule);
	return err_hint(e, "see: stet policy show");
}

static json_t *explain_json(const void *result)
{
	const struct policy_explain_res *res = result;
	json_t *o = json_result();

	json_object_set_new(o, "rule", rule_json(&res->rule));
	json_set_str(o, "yaml", res->text);
	return o;
}

static void explain_free(void *result)
{
	struct policy_explain_res *res = result;

	free(res->text);
	op_policy_free(&res->policy);
}

static const struct verb_arg explain_args[] = {
	{ "RULE", ARG_WORD, true, false, offsetof(struct policy_explain_req, rule) },
	{ NULL },
};

const struct verb verb_policy_explain = {
	.name = "policy explain",
	.summary = "show one rule, with its reason and its tests",
	.description = "Prints the rule as it stands in its file, and where that is.\n"
		       "\n"
		       "  stet policy explain rm.outside",
	.args = explain_args,
	.flags = VERB_JSON | VERB_ANYWHERE,
	.request_size = sizeof(struct policy_explain_req),
	.result_size = sizeof(struct policy_explain_res),
	.run = op_policy_explain,
	.json = explain_json,
	.free = explain_free,
};

static int op_allow(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct allow_req *rq = req;
	struct allow_res *res = result;
	char *dir;
	int r;

	if (op_ctx_realpath(ctx, rq->dir ? rq->dir : ".", &dir, e) < 0)
		return -1;
	res->revoked = rq->revoke;
	r = op_policy_allow(ctx, dir, rq->revoke, res->hash, &res->file, e);
	if (r < 0) {
		free(res->file);
		res->file = NULL;
	}
	free(dir);
	return r;
}

static json_t *allow_json(const void *result)
{
	const struct allow_res *res = result;
	json_t *o = json_result();

	json_set_bytes(o, "file", res->file, strlen(res->file));
	json_object_set_new(o, "allowed", json_boolean(!res->revoked));
	json_set_str(o, "hash", res->revoked ? NULL : res->hash);
	return o;
}

static void allow_free(void *result)
{
	free(((struct allow_res *)result)->file);
}

static const struct verb_opt allow_opts[] = {
	{ "revoke", 0, OPT_FLAG, NULL, "put it out of force again",
	  offsetof(struct allow_req, revoke) },
	{ NULL },
};

static const struct verb_arg allow_args[] = {
	{ "DIR", ARG_DIR, false, false, offsetof(struct allow_req, dir) },
	{ NULL },
};

const struct verb verb_allow = {
	.name = "allow",
	.summary = "put the policy of a project in force",
	.description =
		"A project may bring a policy of its own, .stet.yaml. It is not in force until "
		"a person has read and allowed it with this verb, and again after each change "
		"of the file. It can only make things stricter.\n"
		"\n"
		"  stet allow\n"
		"  stet allow --revoke ~/src/project",
	.opts = allow_opts,
	.args = allow_args,
	.flags = VERB_JSON,
	.request_size = sizeof(struct allow_req),
	.result_size = sizeof(struct allow_res),
	.run = op_allow,
	.json = allow_json,
	.free = allow_free,
};
