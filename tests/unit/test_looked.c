/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "snap/adopt_cache.h"

static char memory[64];

static int make_memory(void **state)
{
	(void)state;
	snprintf(memory, sizeof(memory), "/tmp/looked-%d", (int)getpid());
	unlink(memory);
	return 0;
}

static int drop_memory(void **state)
{
	(void)state;
	unlink(memory);
	return 0;
}

static void test_nothing_is_known(void **state)
{
	(void)state;
	assert_false(adopt_cache_fresh(memory, "/a"));
	adopt_cache_note("/nonexistent/looked", "/a");
	assert_false(adopt_cache_fresh("/nonexistent/looked", "/a"));
}

static void test_one_tree(void **state)
{
	struct stat st;

	(void)state;
	adopt_cache_note(memory, "/a");
	assert_true(adopt_cache_fresh(memory, "/a"));
	assert_false(adopt_cache_fresh(memory, "/b"));
	assert_false(adopt_cache_fresh(memory, "/a/"));
	for (int i = 0; i < 10000; i++) {
		char dir[32];

		snprintf(dir, sizeof(dir), "/other/%d", i);
		adopt_cache_note(memory, dir);
		assert_true(adopt_cache_fresh(memory, dir));
	}
	assert_int_equal(stat(memory, &st), 0);
	assert_true(st.st_size <= 1024);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* Moves what is noted by @seconds. */
static void age(int64_t seconds)
{
	AUTO_CLOSE int fd = open(memory, O_RDWR | O_CLOEXEC);
	int64_t slot[2];

	assert_true(fd >= 0);
	for (off_t at = 0; pread(fd, slot, sizeof(slot), at) == sizeof(slot);
	     at += (off_t)sizeof(slot)) {
		slot[1] -= slot[1] ? seconds : 0;
		assert_int_equal(pwrite(fd, slot, sizeof(slot), at), sizeof(slot));
	}
}

static void test_it_is_forgotten(void **state)
{
	(void)state;
	adopt_cache_note(memory, "/a");
	age(ADOPT_CACHE_SECONDS - 5);
	assert_true(adopt_cache_fresh(memory, "/a"));
	age(5);
	assert_false(adopt_cache_fresh(memory, "/a"));
	/* The clock was set back since. */
	adopt_cache_note(memory, "/a");
	age(-10);
	assert_false(adopt_cache_fresh(memory, "/a"));
	adopt_cache_note(memory, "/a");
	assert_int_equal(truncate(memory, 3), 0);
	assert_false(adopt_cache_fresh(memory, "/a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_is_known, make_memory,
						drop_memory),
		cmocka_unit_test_setup_teardown(test_one_tree, make_memory, drop_memory),
		cmocka_unit_test_setup_teardown(test_it_is_forgotten, make_memory,
						drop_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
