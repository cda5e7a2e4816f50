/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "session/checkpoint_rate.h"

/* So many calls, such a time apart, and how many of them are kept. */
static const struct {
	const char *what;
	int calls, apart_ms, kept;
} even[] = {
	{ "an agent whose model answers", 100, 300, 100 },
	{ "a slow one", 100, 20000, 100 },
	{ "a quick script of few calls", 5, 60, 5 },
	{ "calls at once are one", 40, 1, 1 },
	/* 0, 60, …, 240, then 480, 960, 1920, 3840, and then two seconds apart. */
	{ "a build of three seconds", 50, 60, 8 },
	{ "of six seconds", 101, 60, 10 },
	{ "of an hour", 60001, 60, 1771 },
	{ "compilers of a quarter second", 100, 250, 17 },
};

static void test_even(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(even); i++) {
		struct checkpoint_rate p = { 0 };
		int kept = 0;

		for (int k = 0; k < even[i].calls; k++)
			kept += checkpoint_rate_keeps(
				&p, 1000 + (int64_t)k * even[i].apart_ms, false);
		if (kept != even[i].kept)
			fail_msg("%s: %d of %d were kept, not %d", even[i].what, kept,
				 even[i].calls, even[i].kept);
	}
}

static void test_a_pause_ends_a_burst(void **state)
{
	struct checkpoint_rate p = { 0 };
	int64_t now = 1000;

	(void)state;
	while (checkpoint_rate_keeps(&p, now, true))
		now += 60;
	now += 299;
	assert_false(checkpoint_rate_keeps(&p, now - 240, true));
	assert_true(checkpoint_rate_keeps(&p, now + 60, true));
	for (int i = 1; i < 5; i++)
		assert_true(checkpoint_rate_keeps(&p, now + 60 + 60 * i, true));
	assert_false(checkpoint_rate_keeps(&p, now + 60 + 60 * 5, true));
}

/* git rev-parse, and a moment later what the agent is about to do. */
static void test_text_says_more(void **state)
{
	struct checkpoint_rate p = { 0 };

	(void)state;
	assert_true(checkpoint_rate_keeps(&p, 1000, false));
	assert_false(checkpoint_rate_keeps(&p, 1010, false));
	assert_true(checkpoint_rate_keeps(&p, 1020, true));
	assert_false(checkpoint_rate_keeps(&p, 1030, true));
	assert_false(checkpoint_rate_keeps(&p, 1040, false));
	assert_true(checkpoint_rate_keeps(&p, 1070, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_even),
		cmocka_unit_test(test_a_pause_ends_a_burst),
		cmocka_unit_test(test_text_says_more),
	};

	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
