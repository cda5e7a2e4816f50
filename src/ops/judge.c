/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/judge.h"

#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
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

enum { SEEN_MAX = 100 };

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void keep(struct judge *j, const struct exec_event *ev)
{
	struct redact red = { 0 };
	struct judged *k;

	if (j->nseen == SEEN_MAX) {
		j->more++;
		return;
	}
	j->seen = xrealloc(j->seen, (j->nseen + 1) * sizeof(*j->seen));
	k = &j->seen[j->nseen++];
	*k = (struct judged){ .verdict = ev->verdict->kind,
			      .outcome = ev->outcome,
			      .rule = copy(ev->verdict->rule),
			      .why = copy(ev->verdict->why),
			      .hint = copy(ev->verdict->hint) };
	for (size_t i = 0; i < ev->facts->argc; i++) {
		struct buf b = BUF_INIT;

		redact_word(&red, ev->facts->argv[i], strlen(ev->facts->argv[i]), &b);
		strv_push(&k->argv, xstrdup(buf_str(&b)));
		buf_free(&b);
	}
}

/* In our own process, after the fact: the command does not wait for it. */
static void observe(void *arg, const struct exec_event *ev)
{
	struct judge *j = arg;
	const struct exec_facts *f = ev->facts;
	const struct audit_exec x = {
		.txn = j->rec->id,
		.pid = ev->pid,
		.ppid = ev->ppid,
		.exe = f->exe,
		.cwd = f->cwd,
		.argv = f->argv,
		.argc = f->argc,
		.argc_all = ev->argc,
		.verdict = verdict_name(ev->verdict->kind),
		.rule = ev->verdict->rule,
		.outcome = exec_outcome_name(ev->outcome),
	};

	audit_exec(home_books(&j->ctx->home), &x);
	j->execs++;
	if (ev->verdict->kind != VERDICT_ALLOW || ev->outcome == EXEC_UNVERIFIED)
		keep(j, ev);
}

void judged_free(struct judged *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].rule);
		free(v[i].why);
		free(v[i].hint);
		strv_free(v[i].argv);
	}
	free(v);
}

void judge_open(struct judge *j, struct op_ctx *ctx, const struct policy *p,
		const struct txn_record *rec)
{
	*j = (struct judge){
		.ctx = ctx,
		.policy = p,
		.rec = rec,
		.calls = { .ctx = j,
			   .judge = judge,
			   .ask = ctx->consent ? ask : NULL,
			   .observe = observe },
	};
}

void judge_close(struct judge *j)
{
	strv_free(j->always);
	j->always = NULL;
	judged_free(j->seen, j->nseen);
	j->seen = NULL;
	j->nseen = 0;
}

void judge_headless(struct judge *j)
{
	j->calls.ask = NULL;
}

void judge_attach(struct judge *j, struct run_spec *spec)
{
	if (j->policy)
		spec->gate = &j->calls;
	spec->since.tv_sec = j->rec->begin_ns / 1000000000;
	spec->since.tv_nsec = j->rec->begin_ns % 1000000000;
}
