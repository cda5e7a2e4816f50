/* SPDX-License-Identifier: Apache-2.0 */
#include "change_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "layer/ident.h"

/* What an object is recognised by, and what tells another version of it. */

static const struct ident file = { .ino = 7,
				   .btime = 100,
				   .mode = S_IFREG | 0644,
				   .uid = 1,
				   .gid = 2,
				   .nlink = 1,
				   .size = 3,
				   .mtime = 4,
				   .ctime = 5 };

static void test_who(void **state)
{
	static const struct {
		const char *what;
		struct ident other;
		bool is, same;
	} cases[] = {
		{ "itself", { 7, 100, S_IFREG | 0644, 1, 2, 1, 3, 4, 5 }, true, true },
		{ "moved", { 7, 100, S_IFREG | 0644, 1, 2, 1, 3, 4, 99 }, true, true },
		{ "linked", { 7, 100, S_IFREG | 0644, 1, 2, 9, 3, 4, 5 }, true, true },
		{ "no birth", { 7, 0, S_IFREG | 0644, 1, 2, 1, 3, 4, 5 }, true, true },
		{ "written", { 7, 100, S_IFREG | 0644, 1, 2, 1, 9, 4, 5 }, true, false },
		{ "touched", { 7, 100, S_IFREG | 0644, 1, 2, 1, 3, 9, 5 }, true, false },
		{ "mode", { 7, 100, S_IFREG | 0600, 1, 2, 1, 3, 4, 5 }, true, false },
		{ "owner", { 7, 100, S_IFREG | 0644, 9, 2, 1, 3, 4, 5 }, true, false },
		{ "group", { 7, 100, S_IFREG | 0644, 1, 9, 1, 3, 4, 5 }, true, false },
		{ "another", { 8, 100, S_IFREG | 0644, 1, 2, 1, 3, 4, 5 }, false, false },
		{ "reused", { 7, 101, S_IFREG | 0644, 1, 2, 1, 3, 4, 5 }, false, false },
		{ "a link", { 7, 100, S_IFLNK | 0644, 1, 2, 1, 3, 4, 5 }, false, false },
		{ "nothing", { 0 }, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (ident_is(&file, &cases[i].other) != cases[i].is ||
		    ident_same(&file, &cases[i].other) != cases[i].same)
			fail_msg("%s", cases[i].what);
	}
	assert_false(ident_is(&(struct ident){ 0 }, &(struct ident){ 0 }));
}

/* statx() and stat() tell the same, but for the time of birth. */
static void test_found(void **state)
{
	char dir[] = "/tmp/stet-ident-XXXXXX";
	struct ident a, b;
	struct stat st;
	int at, fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	at = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(at >= 0);
	assert_int_equal(ident_at(at, "none", &a), 0);
	assert_int_equal(a.mode, 0);
	fd = openat(at, "f", O_WRONLY | O_CREAT, 0640);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "12345", 5), 5);
	close(fd);
	assert_int_equal(ident_at(at, "f", &a), 0);
	assert_int_equal(fstatat(at, "f", &st, 0), 0);
	ident_from(&st, &b);
	assert_int_equal(b.btime, 0);
	b.btime = a.btime;
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(a.size, 5);
	assert_int_equal(unlinkat(at, "f", 0), 0);
	close(at);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who),
		cmocka_unit_test(test_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
