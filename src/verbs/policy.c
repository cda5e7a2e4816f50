/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/policy.h"
#include "policy/judge.h"
#include "policy/tests.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "call/call.h"

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

static int op_policy_check(struct verb_call *c, const void *req, void *result,
			   struct err *e)
{
	const struct policy_check_req *rq = req;
	struct policy_check_res *res = result;
	const char *home = op_ctx_env(c->ctx, "HOME"), *cwd;
	struct text_facts f;
	int64_t began;
	int r = 0;

	if (load_here(c->ctx, &res->policy, &cwd, e) < 0)
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

static const char *verdict_word(const void *at)
{
	return verdict_name(((const struct policy_check_res *)at)->verdict.kind);
}

static const char *policy_of_check(const void *at)
{
	return policy_hash(((const struct policy_check_res *)at)->policy.p);
}

static bool has_place(const void *at)
{
	const struct policy_check_res *res = at;

	return res->text && res->verdict.kind != VERDICT_ALLOW;
}

/* Nanoseconds as microseconds: FIELD_KILO divides by 1000, whatever the unit. */
#define CHECK(field) offsetof(struct policy_check_res, field)

static const struct field policy_check_fields[] = {
	{ "judge_us", FIELD_KILO, CHECK(judge_ns), "how long it took, in microseconds" },
	{ "verdict", FIELD_STRING, 0, "allow, defer, checkpoint, ask, deny or kill",
	  .word = verdict_word },
	{ "rule", FIELD_STRING, CHECK(verdict.rule), "that decided", FIELD_CAN_NULL },
	{ "why", FIELD_STRING, CHECK(verdict.why), "its reason", FIELD_CAN_NULL },
	{ "hint", FIELD_STRING, CHECK(verdict.hint), "what to do instead",
	  FIELD_CAN_NULL },
	{ "from", FIELD_COUNT, CHECK(verdict.from), "first byte in the text",
	  .present = has_place },
	{ "to", FIELD_COUNT, CHECK(verdict.to), "the byte after the last one",
	  .present = has_place },
	{ "policy", FIELD_STRING, 0, "hash of the policy", .word = policy_of_check },
	{ "", FIELD_OBJECT, CHECK(policy.project), "", FIELD_FLAT, project_fields },
	{ NULL },
};

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
	.request_size = sizeof(struct policy_check_req),
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON | VERB_COLOR,
	.run = op_policy_check,
	.result_size = sizeof(struct policy_check_res),
	.result = policy_check_fields,
	.status = check_status,
	.free = check_free,
};

static int op_policy_show(struct verb_call *c, const void *req, void *result,
			  struct err *e)
{
	struct policy_show_res *res = result;
	const char *cwd;

	(void)req;
	return load_here(c->ctx, &res->policy, &cwd, e);
}

#define RULE(field) offsetof(struct policy_rule, field)

static const char *rule_verdict(const void *at)
{
	return verdict_name(((const struct policy_rule *)at)->verdict);
}

static const char *rule_origin(const void *at)
{
	return conf_origin_name(((const struct policy_rule *)at)->origin);
}

static const struct field rule_fields[] = {
	{ "id", FIELD_STRING, RULE(id), "its name" },
	{ "verdict", FIELD_STRING, 0, "checkpoint, ask, deny or kill",
	  .word = rule_verdict },
	{ "origin", FIELD_STRING, 0, "builtin, system, user or project",
	  .word = rule_origin },
	{ "group", FIELD_STRING, RULE(group), "rules that belong together",
	  FIELD_CAN_NULL },
	{ "diff", FIELD_BOOL, RULE(diff), "it judges changes, not commands" },
	{ "off", FIELD_BOOL, RULE(off), "another file has switched it off" },
	{ "why", FIELD_STRING, RULE(why), "its reason", FIELD_CAN_NULL },
	{ "hint", FIELD_STRING, RULE(hint), "what to do instead", FIELD_CAN_NULL },
	{ NULL },
};

#define LIMIT(name, help)                                                       \
	{                                                                       \
#name, FIELD_INT64, offsetof(struct policy_limits, name), help, \
			FIELD_IF_SET                                            \
	}

static const struct field limit_fields[] = {
	LIMIT(wall_ms, "time from the start to the end"),
	LIMIT(cpu_ms, "CPU time"),
	LIMIT(memory, "bytes"),
	LIMIT(disk, "bytes"),
	LIMIT(file, "bytes of one file"),
	LIMIT(output, "bytes of output"),
	LIMIT(pids, "processes"),
	LIMIT(files, "files"),
	{ NULL },
};

static const struct op_policy *shown(const void *at)
{
	return &((const struct policy_show_res *)at)->policy;
}

static const char *shown_hash(const void *at)
{
	return policy_hash(shown(at)->p);
}

static const char *shown_default(const void *at)
{
	return verdict_name(policy_default(shown(at)->p));
}

static const char *shown_project(const void *at)
{
	static const char *const words[] = { NULL, "allowed", "waiting", "changed" };

	return words[shown(at)->project];
}

static json_t *shown_limits(const void *at)
{
	return schema_write(limit_fields, policy_limits(shown(at)->p));
}

static json_t *shown_rules(const void *at)
{
	json_t *a = json_array();
	struct policy_rule r;

	for (size_t i = 0; policy_rule_at(shown(at)->p, i, &r); i++)
		json_array_append_new(a, schema_write(rule_fields, &r));
	return a;
}

#define FILE_FROM(name, i)                                                          \
	{                                                                           \
		name, FIELD_STRING, offsetof(struct op_policy, files[i]), "a path", \
			FIELD_CAN_NULL                                              \
	}

static const struct field file_fields[] = {
	FILE_FROM("system", 0),
	FILE_FROM("user", 1),
	FILE_FROM("project", 2),
	{ NULL },
};

#define SHOW(field) offsetof(struct policy_show_res, field)

static const struct field policy_show_fields[] = {
	{ "policy", FIELD_STRING, 0, "hash of the policy", .word = shown_hash },
	{ "default", FIELD_STRING, 0, "verdict where no rule matches",
	  .word = shown_default },
	{ "files", FIELD_OBJECT, SHOW(policy), "that it comes from",
	  .fields = file_fields },
	{ "project", FIELD_STRING, 0, "allowed, waiting or changed", FIELD_CAN_NULL,
	  .word = shown_project },
	{ "", FIELD_OBJECT, SHOW(policy.project), "", FIELD_FLAT, project_fields },
	{ "limits", FIELD_OBJECT, 0, "those that are set", .fields = limit_fields,
	  .make = shown_limits },
	{ "rules", FIELD_LIST, 0, "all of them", .fields = rule_fields,
	  .make = shown_rules },
	{ NULL },
};

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
	.request_size = sizeof(struct policy_show_req),
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON | VERB_COLOR,
	.run = op_policy_show,
	.result_size = sizeof(struct policy_show_res),
	.result = policy_show_fields,
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

static int op_policy_test(struct verb_call *c, const void *req, void *result,
			  struct err *e)
{
	const struct policy_test_req *rq = req;
	struct policy_test_res *res = result;
	struct op_policy p;
	const char *cwd;
	int r;

	if (rq->file)
		r = op_policy_load_file(c->ctx, rq->file, &p, e);
	else
		r = load_here(c->ctx, &p, &cwd, e);
	if (r == 0)
		res->failed = policy_run_tests(p.p, rq->file ? CONF_USER : CONF_BUILTIN,
					       take_test, res);
	if (r == 0 || rq->file)
		op_policy_free(&p);
	return r;
}

#define FAILURE(field) offsetof(struct policy_failure, field)
#define TEST(field) offsetof(struct policy_test_res, field)

static const struct field failure_fields[] = {
	{ "rule", FIELD_STRING, FAILURE(rule), "whose test it is" },
	{ "text", FIELD_STRING, FAILURE(text), "that was judged" },
	{ "want", FIELD_STRING, FAILURE(want), "the verdict that the test names" },
	{ "got", FIELD_STRING, FAILURE(got), "the verdict" },
	{ NULL },
};

static const struct field policy_test_fields[] = {
	{ "run", FIELD_COUNT, TEST(run), "tests in all" },
	{ "failed", FIELD_COUNT, TEST(failed), "tests with another verdict" },
	{ "failures", FIELD_LIST, TEST(failures), "one by one", .fields = failure_fields,
	  .count = TEST(failures_count), .stride = sizeof(struct policy_failure) },
	{ NULL },
};

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
	.request_size = sizeof(struct policy_test_req),
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON,
	.run = op_policy_test,
	.result_size = sizeof(struct policy_test_res),
	.result = policy_test_fields,
	.status = test_status,
	.free = test_free,
};

static int op_policy_explain(struct verb_call *c, const void *req, void *result,
			     struct err *e)
{
	const struct policy_explain_req *rq = req;
	struct policy_explain_res *res = result;
	const char *cwd;
	size_t i;

	if (load_here(c->ctx, &res->policy, &cwd, e) < 0)
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

#define EXPLAIN(field) offsetof(struct policy_explain_res, field)

static const struct field policy_explain_fields[] = {
	{ "rule", FIELD_OBJECT, EXPLAIN(rule), "the rule", .fields = rule_fields },
	{ "yaml", FIELD_STRING, EXPLAIN(text), "as it stands in its file" },
	{ NULL },
};

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
	.request_size = sizeof(struct policy_explain_req),
	.inside = INSIDE_ANYWHERE,
	.flags = VERB_JSON,
	.run = op_policy_explain,
	.result_size = sizeof(struct policy_explain_res),
	.result = policy_explain_fields,
	.free = explain_free,
};

static int op_allow(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct allow_req *rq = req;
	struct allow_res *res = result;
	char *dir;
	int r;

	if (op_ctx_realpath(c->ctx, rq->dir ? rq->dir : ".", &dir, e) < 0)
		return -1;
	res->revoked = rq->revoke;
	r = op_policy_allow(c->ctx, dir, rq->revoke, res->hash, &res->file, e);
	if (r < 0) {
		free(res->file);
		res->file = NULL;
	}
	free(dir);
	return r;
}

static json_t *is_allowed(const void *at)
{
	return json_boolean(!((const struct allow_res *)at)->revoked);
}

static const char *allowed_hash(const void *at)
{
	const struct allow_res *res = at;

	return res->revoked ? NULL : res->hash;
}

static const struct field allow_fields[] = {
	{ "file", FIELD_STRING, offsetof(struct allow_res, file),
	  "the project's policy" },
	{ "allowed", FIELD_BOOL, 0, "it is in force now", .make = is_allowed },
	{ "hash", FIELD_STRING, 0, "of the file that is in force", FIELD_CAN_NULL,
	  .word = allowed_hash },
	{ NULL },
};

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
	.request_size = sizeof(struct allow_req),
	.effect = EFFECT_STORE,
	.flags = VERB_JSON,
	.run = op_allow,
	.result_size = sizeof(struct allow_res),
	.result = allow_fields,
	.free = allow_free,
};
