/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/tests.h"

#include <string.h>

#include "policy/judge.h"
#include "policy/parts.h"
#include "rules/doc.h"

const struct text_facts policy_test_facts = {
	.cwd = "/home/me/project",
	.workspace = "/home/me/project",
	.home = "/home/me",
};

struct test_run {
	const struct policy *p;
	policy_test_fn *fn;
	void *arg;
	size_t failed;
};

static void run_one(struct test_run *run, struct policy_test *t)
{
	struct err e;

	if (policy_judge_text(run->p, t->text, strlen(t->text), &policy_test_facts,
			      &t->got, &e) < 0)
		t->got.kind = VERDICT_KILL;
	/* If no rule has deferred the text, no rule is against it. */
	if (t->want == VERDICT_ALLOW && t->got.kind == VERDICT_DEFER && !t->got.rule)
		t->passed = true;
	else
		t->passed = t->is_hint ? t->got.kind <= VERDICT_CHECKPOINT
				       : t->got.kind == t->want;
	run->failed += !t->passed;
	if (run->fn)
		run->fn(run->arg, t);
}

static void run_rule(struct test_run *run, const struct doc_rule *r, size_t layer,
		     size_t index)
{
	const struct doc_tests *ts = r->tests;
	struct policy_test t = { .rule = r->id, .layer = layer, .index = index };
	uint32_t i;
	size_t k;

	if (r->hint) {
		t.is_hint = true;
		t.text = r->hint;
		run_one(run, &t);
		t.is_hint = false;
	}
	for (k = 0; ts && k <= VERDICT_KILL; k++) {
		const char **lists[] = { ts->allow, ts->defer, ts->checkpoint,
					 ts->ask,   ts->deny,  ts->kill };
		uint32_t counts[] = { ts->allow_count,	    ts->defer_count,
				      ts->checkpoint_count, ts->ask_count,
				      ts->deny_count,	    ts->kill_count };

		for (i = 0; i < counts[k]; i++) {
			t.text = lists[k][i];
			t.want = (enum verdict_kind)k;
			run_one(run, &t);
		}
	}
}

size_t policy_run_tests(const struct policy *p, enum conf_origin origin,
			policy_test_fn *fn, void *arg)
{
	struct test_run run = { p, fn, arg, 0 };
	size_t d;
	uint32_t i;

	for (d = 0; d < p->docs_count; d++)
		for (i = 0; p->origins[d] >= origin && i < p->docs[d]->rules_count; i++)
			run_rule(&run, &p->docs[d]->rules[i], d, i);
	return run.failed;
}

size_t tests_run_layer(const struct policy *p, size_t at, policy_test_fn *fn, void *arg)
{
	struct test_run run = { p, fn, arg, 0 };
	const struct doc *d = p->docs[at];

	for (uint32_t i = 0; i < d->rules_count && !run.failed; i++)
		run_rule(&run, &d->rules[i], at, i);
	return run.failed;
}
