/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "relay_harness.h"
#include "tty/modes.h"

/* Control messages. */

static void test_ctl_round_trip(void **state)
{
	struct ctl_msg m = { .type = CTL_ERROR, .value = -7, .extra = 1ULL << 40 }, got;
	int s[2], fd, p[2];

	(void)state;
	assert_int_equal(ctl_pair(s), 0);
	assert_int_equal(pipe(p), 0);
	err_set(&m.err, ERR_UNSUPPORTED, "no %s", "overlay");
	err_hint(&m.err, "try again");
	memset(m.err.hint + sizeof(m.err.hint) - 1, 'x', 1);
	assert_int_equal(ctl_send(s[0], &m, p[1], 0), 0);
	assert_int_equal(ctl_recv(s[1], &got, &fd, 0), 1);
	assert_int_equal(got.value, -7);
	assert_true(got.extra == 1ULL << 40);
	assert_string_equal(got.err.msg, "no overlay");
	assert_int_equal(got.err.hint[sizeof(got.err.hint) - 1], 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(put(fd, "x", 1));
	close(fd);
	assert_int_equal(ctl_recv(s[1], &got, &fd, MSG_DONTWAIT), -EAGAIN);
	close(s[0]);
	assert_int_equal(ctl_recv(s[1], &got, &fd, 0), 0);
	assert_int_equal(ctl_send_value(s[1], CTL_CONT, 0, 0), -EPIPE);
	close(s[1]);
	close(p[0]);
	close(p[1]);
}

/* PID 1 may end before it has read our last word: what it has said by then counts. */
static void test_ctl_last_words(void **state)
{
	struct ctl_msg m = { .type = CTL_ERROR }, got;
	int s[2], fd;

	(void)state;
	assert_int_equal(ctl_pair(s), 0);
	err_set(&m.err, ERR_SYSTEM, "the disk is full");
	assert_int_equal(ctl_send(s[0], &m, -1, 0), 0);
	assert_int_equal(ctl_send_value(s[1], CTL_GO, 0, 0), 0);
	close(s[0]);
	assert_int_equal(ctl_recv(s[1], &got, &fd, MSG_DONTWAIT), 1);
	assert_string_equal(got.err.msg, "the disk is full");
	assert_int_equal(ctl_recv(s[1], &got, &fd, 0), 0);
	close(s[1]);
}

static int lowest_free(void)
{
	int fd = dup(2);

	close(fd);
	return fd;
}

static void test_ctl_refuses(void **state)
{
	struct ctl_msg m = { .type = CTL_EXITED }, got;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	int s[2], fd, two[2] = { 1, 2 }, low;

	(void)state;
	assert_int_equal(ctl_pair(s), 0);
	low = lowest_free();
	assert_int_equal(send(s[0], &m, sizeof(m) - 1, 0), sizeof(m) - 1);
	assert_int_equal(ctl_recv(s[1], &got, &fd, 0), -EPROTO);
	m.type = CTL_LAST + 1;
	assert_int_equal(send(s[0], &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(ctl_recv(s[1], &got, &fd, 0), -EPROTO);
	m.type = CTL_PTY;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(two));
	memcpy(CMSG_DATA(c), two, sizeof(two));
	assert_int_equal(sendmsg(s[0], &h, 0), sizeof(m));
	assert_int_equal(ctl_recv(s[1], &got, &fd, 0), -EPROTO);
	assert_int_equal(fd, -1);
	assert_int_equal(lowest_free(), low);
	assert_int_equal(fcntl(low + 1, F_GETFD), -1);
	close(s[0]);
	close(s[1]);
}

/* Terminal modes. */

static void test_modes(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain text", "" },
		{ "\033[?1000h\033[?1000l", "" },
		{ "\033[?25l", "\030\033[?25h\033[m" },
		{ "\033[?25l\033[?25h", "" },
		{ "\033[?1049;1006h", "\030\033[?1006l\033[?1049l\033[m" },
		{ "\033[1049h", "" },
		{ "\033[?2004$p", "" },
		{ "\033[?10\030490h", "" },
		{ "\033[?20\033[?2004h", "\030\033[?2004l\033[m" },
		{ "\033[>1u\033[>5u", "\030\033[<2u\033[m" },
		{ "\033[>1u\033[>5u\033[<u", "\030\033[<1u\033[m" },
		{ "\033[>1u\033[<9u", "" },
		{ "\033[=1u", "\030\033[=0u\033[m" },
		{ "\033[>4;2m", "\030\033[>4;0m\033[m" },
		{ "\033[>4;2m\033[>4m", "" },
		{ "\033[?1003h\033c", "" },
		{ "\033[?1;1;1;1;1;1;1;1;1;1000h", "" },
		{ "\033[?99999999999999999999h", "" },
		{ "\033[?67536h", "" }, /* 2000 + 65536 */
	};
	char out[MODES_RESET_MAX + 1];
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct modes whole = { 0 }, bytes = { 0 };

		modes_feed(&whole, cases[i].in, strlen(cases[i].in));
		for (k = 0; cases[i].in[k]; k++)
			modes_feed(&bytes, cases[i].in + k, 1);
		out[modes_reset(&whole, out)] = '\0';
		assert_string_equal(out, cases[i].out);
		out[modes_reset(&bytes, out)] = '\0';
		assert_string_equal(out, cases[i].out);
	}
}

static void test_modes_all_fit(void **state)
{
	static const char on[] = "\033[?1000;1002;1003;1006;1016;1004;2004;2026h"
				 "\033[?2031;1;47;1047;1049h\033[?25l\033[=1u\033[>4;1m";
	struct modes m = { 0 };
	char out[MODES_RESET_MAX + 1];
	size_t n;
	int i;

	(void)state;
	for (i = 0; i < 300; i++)
		modes_feed(&m, "\033[>1u", 5);
	modes_feed(&m, on, strlen(on));
	n = modes_reset(&m, out);
	assert_true(n < MODES_RESET_MAX);
	out[n] = '\0';
	assert_non_null(strstr(out, "\033[<255u"));
	assert_string_equal(out + n - 9, "\033[?25h\033[m");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ctl_round_trip),
		cmocka_unit_test(test_ctl_last_words),
		cmocka_unit_test(test_ctl_refuses),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_modes_all_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
