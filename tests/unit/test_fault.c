/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"

#define ABORTED (128 + SIGABRT)
#define KILLED (128 + SIGKILL)
#define NONE 0

/*
 * A child with @spec passes a, b, a, b, a; the sum tells which one failed and with what:
 * position * 1000 + errno, or how the child ended.
 */
static int outcome(const char *spec)
{
	static const char *const names[] = { "a", "b", "a", "b", "a" };
	struct rlimit no_core = { 0, 0 };
	int result = 0;
	int pipefd[2], status, i;
	pid_t pid;

	assert_int_equal(pipe(pipefd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		if (spec)
			setenv("STET_FAULT", spec, 1);
		for (i = 0; i < 5; i++) {
			int r = FAULT_POINT(names[i]);

			if (r)
				result += (i + 1) * 1000 - r;
		}
		_exit(write(pipefd[1], &result, sizeof(result)) == sizeof(result) ? 0
										  : 1);
	}
	close(pipefd[1]);
	i = (int)read(pipefd[0], &result, sizeof(result));
	close(pipefd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(i, sizeof(result));
	return result;
}

static void test_plans(void **state)
{
	static const struct {
		const char *spec;
		int want;
	} rows[] = {
		{ NULL, NONE },
		{ "", NONE },
		{ "a:1:EIO", 1000 + EIO },
		{ "a:3:ENOSPC", 5000 + ENOSPC },
		{ "a:4:EIO", NONE },
		{ "b:2:EIO", 4000 + EIO },
		{ "b:1:28", 2000 + 28 },
		{ "ab:1:EIO", NONE },
		{ "#1:EIO", 1000 + EIO },
		{ "#4:EDQUOT", 4000 + EDQUOT },
		{ "#5:kill", KILLED },
		{ "#6:kill", NONE },
		{ "b:1:kill", KILLED },
		{ "c:1:kill", NONE },
		{ "#4+:EIO", 9000 + 2 * EIO },
		{ "a:2+:EIO", 8000 + 2 * EIO },
		{ "#1:EIO,#3:EIO", 4000 + 2 * EIO },
		{ "#1:EIO,b:2:ENOSPC", 5000 + EIO + ENOSPC },
		{ "#1:EIO,#2:kill", KILLED },
		{ "#1:EIO,b", ABORTED },
		{ "b,#1:EIO", ABORTED },
		{ "#1++:EIO", ABORTED },
		{ "a", ABORTED },
		{ "a:1", ABORTED },
		{ "a:0:EIO", ABORTED },
		{ "a:-1:EIO", ABORTED },
		{ "a:1:EWHAT", ABORTED },
		{ "a:1:0", ABORTED },
		{ "a:1:99999", ABORTED },
		{ ":1:EIO", ABORTED },
		{ "#:EIO", ABORTED },
		{ "#1", ABORTED },
		{ "#99999999999999999999:EIO", ABORTED },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int got = outcome(rows[i].spec);

		if (got != rows[i].want)
			fail_msg("%s: %d, not %d", rows[i].spec ? rows[i].spec : "(none)",
				 got, rows[i].want);
	}
}

static void check_log(int fd)
{
	static const char want[] = "1 a\n2 b\n3 a\n4 b\n5 a\n";
	char got[256] = { 0 };

	assert_int_equal(read(fd, got, sizeof(got) - 1), sizeof(want) - 1);
	assert_string_equal(got, want);
}

static void test_log(void **state)
{
	char path[] = "/tmp/stet-fault.XXXXXX";
	int fd = mkstemp(path), pipefd[2];
	char number[16];

	(void)state;
	assert_true(fd >= 0);
	setenv("STET_FAULT_LOG", path, 1);
	assert_int_equal(outcome("#2:EIO"), 2000 + EIO);
	check_log(fd);
	close(fd);
	unlink(path);
	assert_int_equal(pipe(pipefd), 0);
	snprintf(number, sizeof(number), "%d", pipefd[1]);
	setenv("STET_FAULT_LOG", number, 1);
	assert_int_equal(outcome(NULL), NONE);
	check_log(pipefd[0]);
	close(pipefd[0]);
	close(pipefd[1]);
	unsetenv("STET_FAULT_LOG");
}

/* With a ticket only one is struck, and without it none. */
static void test_once(void **state)
{
	char path[] = "/tmp/stet-fault.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	setenv("STET_FAULT_ONCE", path, 1);
	assert_int_equal(outcome("#2+:EIO"), 2000 + EIO);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(outcome("#2:kill"), NONE);
	unsetenv("STET_FAULT_ONCE");
}

static void test_stop(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		setenv("STET_FAULT", "#1:stop", 1);
		_exit(FAULT_POINT("a") == 0 ? 7 : 1);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_errno_is_kept(void **state)
{
	(void)state;
	setenv("STET_FAULT_LOG", "/nonexistent/log", 1);
	errno = EXDEV;
	assert_int_equal(FAULT_POINT("a"), 0);
	assert_int_equal(errno, EXDEV);
	unsetenv("STET_FAULT_LOG");
}

static void test_skip(void **state)
{
	(void)state;
	setenv("STET_FAULT_SKIP", "a:2", 1);
	assert_false(FAULT_SKIP("a"));
	assert_false(FAULT_SKIP("b"));
	assert_true(FAULT_SKIP("a"));
	assert_false(FAULT_SKIP("a"));
	unsetenv("STET_FAULT_SKIP");
	assert_false(FAULT_SKIP("a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plans),	      cmocka_unit_test(test_log),
		cmocka_unit_test(test_once),	      cmocka_unit_test(test_stop),
		cmocka_unit_test(test_errno_is_kept), cmocka_unit_test(test_skip),
	};

	unsetenv("STET_FAULT");
	unsetenv("STET_FAULT_LOG");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
