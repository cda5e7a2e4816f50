/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runner/unmount.h"

/* A pipe stands for the mount: its end is read when nobody has the other end any more. */
struct fixture {
	char dir[32];
	int mount[2];
};

static int setup(void **state)
{
	static struct fixture f;

	snprintf(f.dir, sizeof(f.dir), "/tmp/linger-XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	assert_int_equal(pipe2(f.mount, O_CLOEXEC | O_NONBLOCK), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->mount[0]);
	while (wait(NULL) > 0)
		;
	return rmdir(f->dir);
}

static bool is_gone(const struct fixture *f)
{
	char c;

	return read(f->mount[0], &c, 1) == 0;
}

static void test_who_waits_finds_it_gone(void **state)
{
	struct fixture *f = *state;

	unmount_later(f->mount[1], f->dir);
	unmount_await(f->dir);
	assert_true(is_gone(f));
}

static void test_who_made_it_is_not_the_last(void **state)
{
	struct fixture *f = *state;

	unmount_later(f->mount[1], f->dir);
	errno = 0;
	assert_int_equal(fcntl(f->mount[1], F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	unmount_await(f->dir);
}

static void test_without_a_layer_it_goes_at_once(void **state)
{
	struct fixture *f = *state;

	unmount_later(f->mount[1], "/nonexistent");
	assert_true(is_gone(f));
	unmount_await("/nonexistent");
}

/* Whoever is about to mount the layer keeps others from lingering there: they go at once. */
static void test_in_somebodys_way_it_goes_at_once(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(flock(fd, LOCK_EX), 0);
	unmount_later(f->mount[1], f->dir);
	assert_true(is_gone(f));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_waits_finds_it_gone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_who_made_it_is_not_the_last, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_without_a_layer_it_goes_at_once,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_somebodys_way_it_goes_at_once,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("linger", tests, NULL, NULL);
}
