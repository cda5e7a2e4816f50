/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/judge.h"

#include <string.h>

#include "base/buf.h"

/* In PID 1 of the sandbox: nothing but memory is to be had. */
static int judge(void *arg, const struct exec_facts *f, struct verdict *v)
{
	const struct judge *j = arg;

	policy_judge_exec(j->policy, f, v);
	return 0;
}

static bool agreed(const struct judge *j, const char *rule)
{
	for (size_t i = 0; rule && j->always && j->always[i]; i++)
		if (strcmp(j->always[i], rule) == 0)
			return true;
	return false;
}

static bool ask(void *arg, const struct exec_facts *f, const struct verdict *v,
		int64_t until)
{
	struct judge *j = arg;
	const struct consent_question q = { f, v, j->rec->id, until };
	enum consent answer;

	if (agreed(j, v->rule))
		return true;
	answer = j->ctx->consent(j->ctx->consent_arg, &q);
	if (answer == CONSENT_ALWAYS && v->rule)
		strv_push(&j->always, xstrdup(v->rule));
	return answer != CONSENT_NO;
}

void judge_open(struct judge *j, struct op_ctx *ctx, const struct policy *p,
		const struct txn_record *rec)
{
	*j = (struct judge){
		.ctx = ctx,
		.policy = p,
		.rec = rec,
		.calls = { .ctx = j, .judge = judge, .ask = ctx->consent ? ask : NULL },
	};
}

void judge_close(struct judge *j)
{
	strv_free(j->always);
	j->always = NULL;
}

void judge_attach(struct judge *j, struct run_spec *spec)
{
	if (j->policy)
		spec->gate = &j->calls;
	spec->since.tv_sec = j->rec->begin_ns / 1000000000;
	spec->since.tv_nsec = j->rec->begin_ns % 1000000000;
}
