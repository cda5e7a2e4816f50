/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of the corpus in tests/policy gets the verdict that its header says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/judge.h"
#include "policy/policy.h"
#include "policy/tests.h"
#include "policy_rows.h"

struct tally {
	size_t cases, wrong;
};

static void judge_case(void *arg, const struct policy_row *r)
{
	struct tally *t = arg;
	struct verdict v;
	struct err e;

	t->cases++;
	assert_int_equal(policy_judge_text(policy_builtin(), r->text, strlen(r->text),
					   &policy_test_facts, &v, &e),
			 0);
	if (strcmp(verdict_name(v.kind), r->want) != 0) {
		t->wrong++;
		print_error("%s:%d: %s by %s, not %s: %s\n", r->file, r->line,
			    verdict_name(v.kind), v.rule ? v.rule : "nothing", r->want,
			    r->raw);
	}
}

static void test_cases(void **state)
{
	struct tally t = { 0, 0 };

	(void)state;
	assert_true(policy_rows(judge_case, &t) >= 3);
	assert_true(t.cases >= 1500);
	assert_int_equal(t.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
