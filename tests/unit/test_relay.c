/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "relay_harness.h"

#define BIG (8U << 20)

/* Kinds of standard streams. */

enum kind { PIPE, FILE_, NOTHING, NULL_, SOCKET, DIR_, TTY, ZERO };

/* Bits of the report: stream i is a FIFO; it is the caller's own; 1 and 2 are one. */
#define IS_FIFO(i) (1U << (i))
#define IS_ONE (1U << 3)
#define GOT(n) ((uint64_t)(n) << 8)

static void play_kinds(const struct fake_job *job)
{
	struct stat st[3];
	uint64_t bits = 0, got = 0;
	char buf[512];
	ssize_t n;
	int i;

	(void)job;
	fake_send(CTL_STARTED, 1);
	for (i = 0; i < 3; i++) {
		fstat(i, &st[i]);
		bits |= S_ISFIFO(st[i].st_mode) ? IS_FIFO(i) : 0;
	}
	bits |= st[1].st_ino == st[2].st_ino ? IS_ONE : 0;
	put(1, "a", 1);
	put(2, "b", 1);
	put(1, "c", 1);
	/* /dev/zero has no end. */
	while (got < 4096 && (n = read(0, buf, sizeof(buf))) > 0)
		got += (uint64_t)n;
	fake_exit(0, bits | GOT(got));
}

struct stream {
	int fd, other; /* other: where the test reads or writes; -1 if nothing */
};

static struct stream make(enum kind kind, bool input)
{
	struct stream s = { -1, -1 };
	struct termios raw;
	int p[2];

	switch (kind) {
	case PIPE:
		assert_int_equal(pipe2(p, O_CLOEXEC), 0);
		s.fd = p[!input];
		s.other = p[input];
		break;
	case FILE_:
		s.fd = scratch_file(0);
		s.other = dup(s.fd);
		break;
	case NULL_:
		s.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		break;
	case SOCKET:
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p),
				 0);
		s.fd = p[0];
		s.other = p[1];
		break;
	case DIR_:
		s.fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		break;
	case TTY:
		assert_int_equal(openpty(&s.other, &s.fd, NULL, NULL, NULL), 0);
		tcgetattr(s.fd, &raw);
		raw.c_lflag &= ~(unsigned)ECHO;
		tcsetattr(s.fd, TCSANOW, &raw);
		break;
	case ZERO:
		s.fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
		break;
	case NOTHING:
		break;
	}
	if (!input || s.other < 0)
		return s;
	assert_true(
		put(s.other, kind == TTY ? "hey\n\004" : "hey\n", kind == TTY ? 5 : 4));
	if (kind == FILE_)
		lseek(s.fd, 0, SEEK_SET);
	else if (kind != TTY)
		s.other = (close(s.other), -1);
	return s;
}

static void assert_came(struct stream s, enum kind kind, const char *text)
{
	char buf[16] = "";
	size_t len = strlen(text);

	if (s.other < 0 || kind == NOTHING)
		return;
	if (kind == FILE_)
		lseek(s.other, 0, SEEK_SET);
	assert_true(get(s.other, buf, len));
	assert_string_equal(buf, text);
}

static void drop(struct stream s)
{
	if (s.fd >= 0)
		close(s.fd);
	if (s.other >= 0)
		close(s.other);
}

static void test_kinds(void **state)
{
	static const struct {
		enum kind in, out, err;
		bool joined; /* 1 and 2 are the same object */
		unsigned got;
	} cases[] = {
		{ PIPE, PIPE, PIPE, false, 4 },
		{ PIPE, PIPE, PIPE, true, 4 },
		{ FILE_, FILE_, FILE_, false, 4 },
		{ FILE_, FILE_, FILE_, true, 4 },
		{ NOTHING, NOTHING, NOTHING, false, 0 },
		{ NULL_, NULL_, NULL_, false, 0 },
		{ SOCKET, SOCKET, SOCKET, true, 4 },
		{ SOCKET, FILE_, PIPE, false, 4 },
		{ DIR_, FILE_, NOTHING, false, 0 },
		{ TTY, FILE_, FILE_, true, 4 },
		{ TTY, TTY, TTY, true, 4 },
		{ NULL_, TTY, FILE_, false, 0 },
		{ ZERO, FILE_, ZERO, false, 4096 },
		{ NOTHING, PIPE, NOTHING, false, 0 },
		{ FILE_, NOTHING, PIPE, false, 4 },
	};
	struct fake_report rep;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool joined = cases[i].joined;
		struct stream in = make(cases[i].in, true),
			      out = make(cases[i].out, false);
		struct stream err = joined ? out : make(cases[i].err, false);
		struct fake_job job = { .fds = { in.fd, out.fd, err.fd },
					.play = play_kinds };

		assert_true(harness_run(&job, &rep));
		assert_int_equal(rep.rc, 0);
		assert_false(rep.pty);
		assert_true(rep.signals_kept);
		assert_true(rep.end.started && rep.end.exited);
		assert_int_equal(rep.end.renames & 0xff, IS_FIFO(0) | IS_FIFO(1) |
								 IS_FIFO(2) |
								 (joined ? IS_ONE : 0));
		assert_int_equal(rep.end.renames >> 8, cases[i].got);
		assert_came(out, cases[i].out, joined ? "abc" : "ac");
		if (!joined) {
			assert_came(err, cases[i].err, "b");
			drop(err);
		}
		drop(in);
		drop(out);
	}
}

/* Much data. */

static void play_cat(const struct fake_job *job)
{
	static char buf[50000];
	ssize_t n;

	(void)job;
	fake_send(CTL_STARTED, 1);
	while ((n = read(0, buf, sizeof(buf))) > 0)
		if (!put(1, buf, (size_t)n))
			fake_exit(0, 1);
	fake_exit(0, 0);
}

static void test_big_file_to_file(void **state)
{
	int in = scratch_file(BIG), out = scratch_file(0);
	struct fake_job job = { .fds = { in, out, -1 }, .play = play_cat };
	struct fake_report rep;
	uint64_t n1, n2;

	(void)state;
	assert_true(harness_run(&job, &rep));
	assert_true(rep.end.exited);
	assert_true(file_checksum(in, &n1) == file_checksum(out, &n2));
	assert_int_equal(n1, BIG);
	assert_int_equal(n2, BIG);
	assert_int_equal(lseek(in, 0, SEEK_CUR), BIG);
	close(in);
	close(out);
}

/* Both directions at once, through one socket, by a peer that takes little at a time. */
static void test_big_through_socket(void **state)
{
	static unsigned char data[BIG], back[BIG];
	size_t sent = 0, got = 0;
	struct fake_report rep;
	struct fake_job job = { .play = play_cat };
	int s[2], report, src = scratch_file(BIG);
	pid_t pid;

	(void)state;
	assert_true(get(src, data, BIG));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	job.fds[0] = job.fds[1] = s[0];
	job.fds[2] = -1;
	pid = harness_start(&job, &report);
	close(s[0]);
	while (got < BIG) {
		struct pollfd pf = { s[1], (short)(POLLIN | (sent < BIG ? POLLOUT : 0)),
				     0 };
		ssize_t n;

		assert_true(poll(&pf, 1, HARNESS_LIMIT * 1000) > 0);
		if (pf.revents & POLLOUT) {
			n = send(s[1], data + sent, BIG - sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
			assert_true(n > 0 || errno == EAGAIN);
			sent += n > 0 ? (size_t)n : 0;
			if (sent == BIG)
				shutdown(s[1], SHUT_WR);
		}
		if (pf.revents & POLLIN) {
			n = read(s[1], back + got, BIG - got < 9999 ? BIG - got : 9999);
			assert_true(n > 0);
			got += (size_t)n;
		}
	}
	assert_true(harness_end(pid, report, &rep));
	assert_memory_equal(data, back, BIG);
	close(s[1]);
	close(src);
}

/* The last words are many, and PID 1 is gone at once. */
static void play_last_words(const struct fake_job *job)
{
	static char buf[60000];

	(void)job;
	memset(buf, 'w', sizeof(buf));
	fake_send(CTL_STARTED, 1);
	put(1, buf, sizeof(buf));
	fake_exit(3 << 8, 0);
}

static void test_last_words(void **state)
{
	int out = scratch_file(0);
	struct fake_job job = { .fds = { -1, out, -1 }, .play = play_last_words };
	struct fake_report rep;
	uint64_t n;

	(void)state;
	assert_true(harness_run(&job, &rep));
	file_checksum(out, &n);
	assert_int_equal(n, 60000);
	assert_int_equal(rep.end.wait_status, 3 << 8);
	close(out);
}

/* Somebody outlives PID 1 and keeps the pipe open. */
static void play_holder(const struct fake_job *job)
{
	char c;

	(void)job;
	if (fork() == 0) {
		close(FAKE_CTL);
		get(0, &c, 1);
		_exit(0);
	}
	fake_send(CTL_STARTED, 1);
	put(1, "x", 1);
	fake_exit(0, 0);
}

static void test_holder(void **state)
{
	int out = scratch_file(0), p[2];
	struct fake_job job = { .play = play_holder };
	struct fake_report rep;

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	job.fds[0] = p[0];
	job.fds[1] = out;
	job.fds[2] = -1;
	assert_true(harness_run(&job, &rep));
	assert_true(rep.end.exited);
	close(p[1]);
	close(p[0]);
	close(out);
}

/* Readers that go away, disks that are full. */

static void play_until_error(const struct fake_job *job)
{
	static char buf[4096];

	(void)job;
	signal(SIGPIPE, SIG_IGN);
	fake_send(CTL_STARTED, 1);
	while (write(1, buf, sizeof(buf)) > 0)
		;
	fake_exit(0, (uint64_t)errno);
}

static void test_reader_gone(void **state)
{
	struct fake_job job = { .play = play_until_error };
	struct fake_report rep;
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	close(s[1]);
	job.fds[0] = -1;
	job.fds[1] = s[0];
	job.fds[2] = -1;
	assert_true(harness_run(&job, &rep));
	assert_int_equal(rep.end.renames, EPIPE);
	assert_int_equal(rep.end.lost_errno, 0);
	close(s[0]);
	job.fds[1] = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(harness_run(&job, &rep));
	assert_int_equal(rep.end.renames, EPIPE);
	assert_int_equal(rep.end.lost_errno, ENOSPC);
	close(job.fds[1]);
}

/* What the command leaves of stdin. */

static void play_reads(const struct fake_job *job)
{
	char buf[4096];

	fake_send(CTL_STARTED, 1);
	get(0, buf, job->arg);
	fake_exit(0, 0);
}

static void play_error(const struct fake_job *job)
{
	struct ctl_msg m = { .type = CTL_ERROR };

	(void)job;
	err_set(&m.err, ERR_UNSUPPORTED, "user namespaces are switched off");
	err_hint(&m.err, "sysctl something=1");
	m.err.sys = EPERM;
	ctl_send(FAKE_CTL, &m, -1, 0);
	_exit(1);
}

static void test_stdin_left(void **state)
{
	static const struct {
		size_t size, reads;
	} cases[] = { { 100, 10 }, { 100, 100 }, { 100, 0 }, { BIG, 1000 } };
	struct fake_report rep;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		int in = scratch_file(cases[i].size);
		struct fake_job job = { .fds = { in, -1, -1 },
					.play = play_reads,
					.arg = cases[i].reads };

		assert_true(harness_run(&job, &rep));
		assert_int_equal(lseek(in, 0, SEEK_CUR), cases[i].reads);
		job.play = play_error;
		assert_true(harness_run(&job, &rep));
		assert_int_equal(lseek(in, 0, SEEK_CUR), cases[i].reads);
		close(in);
	}
}

static void play_late_error(const struct fake_job *job)
{
	put(1, "x", 1);
	fake_expect(CTL_SIGNAL);
	play_error(job);
}

/* Nothing was run: nothing of stdin is taken. */
static void test_stdin_kept(void **state)
{
	struct fake_job job = { .play = play_late_error };
	struct fake_report rep;
	int s[2], report;
	char buf[4];
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	assert_true(put(s[1], "keep", 4));
	job.fds[0] = job.fds[1] = s[0];
	job.fds[2] = -1;
	pid = harness_start(&job, &report);
	assert_true(get(s[1], buf, 1));
	kill(pid, SIGTERM);
	assert_true(harness_end(pid, report, &rep));
	assert_true(rep.end.failed);
	assert_int_equal(recv(s[0], buf, sizeof(buf), MSG_DONTWAIT), 4);
	close(s[0]);
	close(s[1]);
}

static void play_close_stdin(const struct fake_job *job)
{
	char c;

	(void)job;
	fake_send(CTL_STARTED, 1);
	get(0, &c, 1);
	close(0);
	put(1, "closed", 6);
	fake_expect(CTL_SIGNAL);
	fake_exit(0, 0);
}

/* A command that closed stdin: what is sent from then on is not taken. */
static void test_stdin_closed(void **state)
{
	struct fake_job job = { .play = play_close_stdin };
	struct fake_report rep;
	int s[2], out[2], report;
	char buf[6];
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	job.fds[0] = s[0];
	job.fds[1] = out[0];
	job.fds[2] = -1;
	pid = harness_start(&job, &report);
	assert_true(put(s[1], "1", 1));
	assert_true(get(out[1], buf, 6));
	assert_true(put(s[1], "2", 1));
	kill(pid, SIGTERM);
	assert_true(harness_end(pid, report, &rep));
	assert_int_equal(recv(s[0], buf, sizeof(buf), MSG_DONTWAIT), 1);
	assert_int_equal(buf[0], '2');
	close(s[0]);
	close(s[1]);
	close(out[0]);
	close(out[1]);
}

/* Ends. */

static void test_error(void **state)
{
	struct fake_job job = { .fds = { -1, -1, -1 }, .play = play_error };
	struct fake_report rep;

	(void)state;
	assert_true(harness_run(&job, &rep));
	assert_int_equal(rep.rc, 0);
	assert_true(rep.end.failed && !rep.end.started && !rep.end.exited);
	assert_int_equal(rep.end.err.kind, ERR_UNSUPPORTED);
	assert_int_equal(rep.end.err.sys, EPERM);
	assert_string_equal(rep.end.err.msg, "user namespaces are switched off");
	assert_string_equal(rep.end.err.hint, "sysctl something=1");
}

static void play_exec_failed(const struct fake_job *job)
{
	(void)job;
	fake_send(CTL_STARTED, 4321);
	fake_send(CTL_EXEC_FAILED, ENOENT);
	_exit(0);
}

static void test_exec_failed(void **state)
{
	struct fake_job job = { .fds = { -1, -1, -1 }, .play = play_exec_failed };
	struct fake_report rep;

	(void)state;
	assert_true(harness_run(&job, &rep));
	assert_int_equal(rep.end.exec_errno, ENOENT);
	assert_int_equal(rep.end.setup_us, 4321);
	assert_false(rep.end.failed);
}

static void play_nonsense(const struct fake_job *job)
{
	struct ctl_msg m = { .type = CTL_PTY };

	switch (job->arg) {
	case 0:
		_exit(0);
	case 1:
		put(FAKE_CTL, "short", 5);
		break;
	case 2:
		fake_send(CTL_GO, 0);
		break;
	case 3:
		ctl_send(FAKE_CTL, &m, 0, 0);
		break;
	case 4:
		close(FAKE_CTL);
		raise(SIGKILL);
		break;
	}
	for (;;)
		pause();
}

static void test_nonsense(void **state)
{
	struct fake_job job = { .fds = { -1, -1, -1 }, .play = play_nonsense };
	struct fake_report rep;

	(void)state;
	for (job.arg = 0; job.arg < 5; job.arg++) {
		assert_true(harness_run(&job, &rep));
		assert_true(rep.end.failed);
		assert_true(rep.end.err.msg[0] != '\0');
		if (job.arg == 0 || job.arg == 4)
			assert_string_equal(rep.end.err.msg,
					    "the sandbox ended unexpectedly");
		assert_true(rep.signals_kept);
	}
}

static void play_timeout(const struct fake_job *job)
{
	int32_t sig;

	fake_send(CTL_STARTED, 1);
	sig = fake_expect(CTL_SIGNAL);
	while (job->arg)
		pause();
	fake_exit(sig, 0);
}

static void test_timeout(void **state)
{
	struct fake_job job = { .fds = { -1, -1, -1 },
				.play = play_timeout,
				.timeout_ms = 20 };
	struct fake_report rep;

	(void)state;
	assert_true(harness_run(&job, &rep));
	assert_true(rep.end.timed_out && rep.end.exited);
	assert_int_equal(rep.end.wait_status, SIGTERM);
	job.arg = 1; /* one that does not listen */
	job.grace_ms = 100;
	assert_true(harness_run(&job, &rep));
	assert_true(rep.end.timed_out && rep.end.exited);
	assert_int_equal(rep.end.wait_status, SIGKILL);
	job.play = play_last_words; /* one that is quick enough */
	job.timeout_ms = HARNESS_LIMIT * 1000;
	assert_true(harness_run(&job, &rep));
	assert_false(rep.end.timed_out);
}

/* Signals. */

static void play_signals(const struct fake_job *job)
{
	int32_t first;

	fake_send(CTL_STARTED, 1);
	put(1, "r", 1);
	first = fake_expect(CTL_SIGNAL);
	put(1, "s", 1);
	while (job->arg)
		pause();
	fake_exit(0, (uint64_t)first);
}

/* Sends @first once the loop runs and, once that has arrived, @second unless it is 0. */
static void send_signals(struct fake_job *job, int first, int second,
			 struct fake_report *rep)
{
	int s[2], report;
	pid_t pid;
	char c;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	job->fds[0] = job->fds[2] = -1;
	job->fds[1] = s[0];
	job->play = play_signals;
	pid = harness_start(job, &report);
	assert_true(get(s[1], &c, 1));
	if (job->ignore)
		kill(pid, job->ignore);
	kill(pid, first);
	assert_true(get(s[1], &c, 1));
	if (second)
		kill(pid, second);
	assert_true(harness_end(pid, report, rep));
	close(s[0]);
	close(s[1]);
}

static void test_signals(void **state)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
	struct fake_job job = { 0 };
	struct fake_report rep;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		send_signals(&job, sigs[i], 0, &rep);
		assert_true(rep.end.exited);
		assert_int_equal(rep.end.renames, sigs[i]);
	}
	job.ignore = SIGHUP;
	send_signals(&job, SIGTERM, 0, &rep);
	assert_int_equal(rep.end.renames, SIGTERM);
	job.ignore = 0;
	job.arg = 1;
	send_signals(&job, SIGTERM, SIGINT, &rep);
	assert_true(rep.end.exited && !rep.end.timed_out && !rep.end.failed);
	assert_int_equal(rep.end.wait_status, SIGKILL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_big_file_to_file),
		cmocka_unit_test(test_big_through_socket),
		cmocka_unit_test(test_last_words),
		cmocka_unit_test(test_holder),
		cmocka_unit_test(test_reader_gone),
		cmocka_unit_test(test_stdin_left),
		cmocka_unit_test(test_stdin_closed),
		cmocka_unit_test(test_stdin_kept),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_exec_failed),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
