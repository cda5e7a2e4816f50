/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_TESTS_H
#define STET_POLICY_TESTS_H

#include "policy/policy.h"

/* The result of a test that stands in a rule, or of a rule's hint. */
struct policy_test {
	const char *rule, *text;
	enum verdict_kind want; /* of a hint: VERDICT_ALLOW */
	bool is_hint;		/* any verdict up to checkpoint is right */
	bool passed;
	struct verdict got;
	size_t layer, index; /* of the document, and of the rule in it */
};
typedef void policy_test_fn(void *arg, const struct policy_test *t);

/*
 * Runs the tests in the rules of @origin and of the origins after it, and judges their hints.
 * @fn is told of each. Returns the number of those that came out wrong.
 */
size_t policy_run_tests(const struct policy *p, enum conf_origin origin,
			policy_test_fn *fn, void *arg);

/* Runs the tests of layer number @at, up to the first rule with a wrong result. */
size_t tests_run_layer(const struct policy *p, size_t at, policy_test_fn *fn, void *arg);

/* The place in which tests run: $WORKSPACE and the current directory, and $HOME. */
extern const struct text_facts policy_test_facts;

#endif
