/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "relay_harness.h"

/*
 * The test is the terminal emulator (it holds the master). Below it a session leader
 * plays the shell: it puts the caller in the foreground or not, tells when the caller
 * stops, and continues it as it is told.
 */
struct shell {
	int term;   /* the terminal's master */
	int orders; /* 'f': fg; 'b': bg, then another; 'F': fg without SIGCONT */
	int events; /* 's' when the job stopped, 'e' when it ended */
	int report;
	pid_t pid, job;
	struct termios modes;
};

static void foreground(pid_t group)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (tcsetpgrp(0, group))
		_exit(92);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void obey(int orders, pid_t job)
{
	char c = 0;

	if (!get(orders, &c, 1))
		_exit(93);
	if (c == 'f' || c == 'F')
		foreground(job);
	if (c != 'F')
		kill(-job, SIGCONT);
	if (c == 'b')
		obey(orders, job);
}

static _Noreturn void shell(const struct fake_job *spec, bool start_behind, int orders,
			    int events, int report)
{
	struct fake_job job = *spec;
	int status, i;
	pid_t pid;

	alarm(HARNESS_LIMIT);
	signal(SIGHUP, SIG_IGN);
	setsid();
	if (ioctl(spec->fds[0], TIOCSCTTY, 0) || dup2(spec->fds[0], 0))
		_exit(94);
	for (i = 0; i < 3; i++)
		job.fds[i] = spec->fds[i];
	pid = fork();
	if (pid == 0) {
		signal(SIGHUP, SIG_DFL);
		setpgid(0, 0);
		if (!start_behind)
			foreground(getpid());
		harness_caller(&job, report);
	}
	close(report);
	put(events, &pid, sizeof(pid));
	if (start_behind)
		obey(orders, pid);
	while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
		foreground(getpgrp());
		put(events, "s", 1);
		obey(orders, pid);
	}
	foreground(getpgrp());
	put(events, "e", 1);
	_exit(0);
}

static void start(struct shell *s, struct fake_job *job, bool start_behind)
{
	int orders[2], events[2], report[2], slave;
	struct winsize size = { 33, 101, 0, 0 };

	assert_int_equal(openpty(&s->term, &slave, NULL, NULL, &size), 0);
	fcntl(s->term, F_SETFD, FD_CLOEXEC);
	tcgetattr(s->term, &s->modes);
	s->modes.c_cc[VINTR] = 7;
	s->modes.c_lflag &= ~(unsigned)ECHO;
	tcsetattr(s->term, TCSANOW, &s->modes);
	assert_int_equal(pipe2(orders, O_CLOEXEC) | pipe2(events, O_CLOEXEC), 0);
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	job->want_tty = true;
	job->fds[0] = job->fds[1] = slave;
	if (job->fds[2] == 0)
		job->fds[2] = slave;
	s->pid = fork();
	if (s->pid == 0) {
		close(s->term);
		/* It ends when the test's own end of the orders is closed. */
		close(orders[1]);
		close(events[0]);
		close(report[0]);
		shell(job, start_behind, orders[0], events[1], report[1]);
	}
	close(slave);
	close(orders[0]);
	close(events[1]);
	close(report[1]);
	s->orders = orders[1];
	s->events = events[0];
	s->report = report[0];
	assert_true(get(s->events, &s->job, sizeof(s->job)));
}

static void event(const struct shell *s, char want)
{
	char c = 0;

	assert_true(get(s->events, &c, 1));
	assert_int_equal(c, want);
}

/* After the last event, or in place of it: the report. */
static void reap(struct shell *s, struct fake_report *rep)
{
	assert_true(get(s->report, rep, sizeof(*rep)));
	assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
	if (s->term >= 0)
		close(s->term);
	close(s->orders);
	close(s->events);
	close(s->report);
	assert_int_equal(rep->rc, 0);
	assert_true(rep->pty);
	assert_true(rep->signals_kept);
}

static void finish(struct shell *s, struct fake_report *rep)
{
	event(s, 'e');
	reap(s, rep);
}

static void expect(const struct shell *s, const char *text)
{
	char buf[256] = "";
	size_t len = strlen(text);

	assert_true(get(s->term, buf, len));
	assert_memory_equal(buf, text, len);
}

static bool is_raw(const struct shell *s)
{
	struct termios t;

	tcgetattr(s->term, &t);
	return !(t.c_lflag & (unsigned)(ICANON | ISIG)) &&
	       !(t.c_iflag & (unsigned)ICRNL) && !(t.c_oflag & (unsigned)OPOST);
}

static bool is_restored(const struct shell *s)
{
	struct termios t;

	tcgetattr(s->term, &t);
	return t.c_lflag == s->modes.c_lflag && t.c_iflag == s->modes.c_iflag &&
	       t.c_oflag == s->modes.c_oflag && t.c_cc[VINTR] == 7;
}

/* The inner terminal passes bytes as they are. */
static void inner_raw(void)
{
	struct termios t;

	tcgetattr(0, &t);
	cfmakeraw(&t);
	tcsetattr(0, TCSANOW, &t);
}

static uint64_t inner_size(void)
{
	struct winsize size = { 0 };

	ioctl(0, TIOCGWINSZ, &size);
	return (uint64_t)size.ws_row << 16 | size.ws_col;
}

#define SIZE(r, c) ((uint64_t)(r) << 16 | (c))

static void play_look(const struct fake_job *job)
{
	struct termios t;
	uint64_t at_start = inner_size();
	sigset_t set;
	char buf[9];
	int sig;

	(void)job;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tcgetattr(0, &t);
	if (t.c_cc[VINTR] != 7 || (t.c_lflag & (unsigned)ECHO))
		fake_exit(0, 1);
	inner_raw();
	fake_send(CTL_STARTED, 1);
	put(1, "up", 2);
	get(0, buf, sizeof(buf));
	put(1, buf, sizeof(buf));
	while (inner_size() != SIZE(44, 55))
		sigwait(&set, &sig);
	fake_exit(0, at_start);
}

static void test_raw_and_size(void **state)
{
	static const char bytes[] = "\003\032\021\023\000\377\r\n\004";
	struct winsize size = { 44, 55, 0, 0 };
	struct fake_job job = { .play = play_look };
	struct fake_report rep;
	struct shell s;
	char back[9];

	(void)state;
	start(&s, &job, false);
	expect(&s,
	       "up"); /* raw mode was set before; in the other these would be signals */
	assert_true(put(s.term, bytes, 9));
	assert_true(get(s.term, back, 9));
	assert_memory_equal(back, bytes, 9);
	assert_true(is_raw(&s));
	assert_int_equal(ioctl(s.term, TIOCSWINSZ, &size), 0);
	event(&s, 'e');
	assert_true(is_restored(&s));
	reap(&s, &rep);
	assert_int_equal(rep.end.renames, SIZE(33, 101));
}

static void play_stop(const struct fake_job *job)
{
	char c;
	uint64_t i;

	inner_raw();
	fake_send(CTL_STARTED, 1);
	put(1, "run", 3);
	for (i = 0; i < job->arg; i++)
		put(1, "w", 1);
	put(1, "bye", 3);
	fake_send(CTL_STOPPED, SIGTSTP);
	fake_expect(CTL_CONT);
	put(1, "again", 5);
	get(0, &c, 1);
	fake_exit(0, inner_size());
}

static void test_stop_and_go(void **state)
{
	struct winsize size = { 10, 20, 0, 0 };
	struct fake_job job = { .play = play_stop };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, false);
	event(&s, 's');
	assert_true(is_restored(&s));
	expect(&s, "runbye");
	assert_int_equal(ioctl(s.term, TIOCSWINSZ, &size), 0);
	assert_true(put(s.orders, "f", 1));
	expect(&s, "again");
	assert_true(is_raw(&s));
	assert_true(put(s.term, "x", 1));
	finish(&s, &rep);
	assert_int_equal(rep.end.renames, SIZE(10, 20));
}

/* More than the terminal takes at once: we stop only when it has seen it all. */
static void test_stop_after_output(void **state)
{
	static char buf[20000];
	struct fake_job job = { .play = play_stop, .arg = sizeof(buf) };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, false);
	expect(&s, "run");
	assert_true(get(s.term, buf, sizeof(buf)));
	expect(&s, "bye");
	event(&s, 's');
	assert_true(put(s.orders, "f", 1));
	expect(&s, "again");
	assert_true(put(s.term, "x", 1));
	finish(&s, &rep);
}

/* Ctrl-Z, bg, then fg as bash does it for a running job: without SIGCONT. */
static void test_background(void **state)
{
	struct fake_job job = { .play = play_stop };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, false);
	event(&s, 's');
	assert_true(put(s.orders, "b", 1));
	expect(&s, "runbyeagain");
	assert_true(is_restored(&s));
	assert_true(put(s.orders, "F", 1));
	assert_true(put(s.term, "x\n", 2));
	finish(&s, &rep);
	assert_true(rep.end.exited);
}

static void play_talk(const struct fake_job *job)
{
	char c;

	(void)job;
	inner_raw();
	fake_send(CTL_STARTED, 1);
	put(1, "talk", 4);
	get(0, &c, 1);
	put(1, "done", 4);
	fake_exit(0, (uint64_t)c);
}

static void test_started_behind(void **state)
{
	struct fake_job job = { .play = play_talk };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, true);
	expect(&s, "talk");
	assert_true(is_restored(&s));
	assert_true(put(s.orders, "F", 1));
	assert_true(put(s.term, "x\n", 2));
	expect(&s, "done");
	event(&s, 'e');
	assert_true(is_restored(&s));
	reap(&s, &rep);
	assert_int_equal(rep.end.renames, 'x');
}

static void play_wait(const struct fake_job *job)
{
	(void)job;
	fake_send(CTL_STARTED, 1);
	put(1, "up", 2);
	fake_expect(CTL_SIGNAL);
	fake_exit(0, 0);
}

/* Stopped from outside while raw, then ended in the background: the modes that the shell
 * has set since are its own. */
static void test_ends_behind(void **state)
{
	struct fake_job job = { .play = play_wait };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, false);
	expect(&s, "up");
	kill(s.job, SIGSTOP);
	event(&s, 's');
	assert_true(is_raw(&s));
	s.modes.c_iflag ^= (unsigned)IXON;
	tcsetattr(s.term, TCSANOW, &s.modes);
	kill(s.job, SIGTERM);
	assert_true(put(s.orders, "bb", 2));
	assert_true(get(s.report, &rep, sizeof(rep)));
	assert_true(rep.end.exited);
	assert_true(is_restored(&s));
	close(s.orders);
	waitpid(s.pid, NULL, 0);
	close(s.term);
	close(s.events);
	close(s.report);
}

/* Nobody could continue a session leader: the command goes on at once. */
static void test_orphan(void **state)
{
	struct fake_job job = { .play = play_stop, .want_tty = true };
	struct fake_report rep;
	struct shell s = { 0 };
	int report[2], slave;
	pid_t pid;

	(void)state;
	assert_int_equal(openpty(&s.term, &slave, NULL, NULL, NULL), 0);
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	job.fds[0] = job.fds[1] = job.fds[2] = slave;
	pid = fork();
	if (pid == 0) {
		setsid();
		ioctl(slave, TIOCSCTTY, 0);
		close(s.term);
		harness_caller(&job, report[1]);
	}
	close(report[1]);
	expect(&s, "runbyeagain");
	assert_true(is_raw(&s));
	assert_true(put(s.term, "x", 1));
	assert_true(harness_end(pid, report[0], &rep));
	assert_true(rep.end.exited);
	assert_false(is_raw(&s));
	close(s.term);
	close(slave);
}

static void play_full_screen(const struct fake_job *job)
{
	inner_raw();
	fake_send(CTL_STARTED, 1);
	put(1, "\033[?1049h\033[?1000h\033[?25l", 22);
	if (job->arg == UINT64_MAX) {
		fake_expect(CTL_SIGNAL);
		put(1, "!", 1);
		for (;;)
			pause();
	}
	fake_exit((int)job->arg, 0);
}

#define ENTERED "\033[?1049h\033[?1000h\033[?25l"
#define LEFT "\030\033[?1000l\033[?1049l\033[?25h\033[m"

static void test_modes_reset(void **state)
{
	static const struct {
		uint64_t status;
		const char *out;
	} cases[] = {
		{ SIGSEGV, ENTERED LEFT },
		{ 0, ENTERED },
		{ 1 << 8, ENTERED },
	};
	struct fake_job job = { .play = play_full_screen };
	struct fake_report rep;
	struct shell s;
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		job.arg = cases[i].status;
		job.fds[2] = 0;
		start(&s, &job, false);
		event(&s, 'e');
		assert_true(is_restored(&s));
		expect(&s, cases[i].out);
		assert_true(ioctl(s.term, FIONREAD, &n) || n == 0);
		reap(&s, &rep);
		assert_int_equal(rep.end.wait_status, cases[i].status);
	}
}

/* Two SIGTERMs end one that does not listen; the terminal is put right. */
static void test_killed(void **state)
{
	struct fake_job job = { .play = play_full_screen, .arg = UINT64_MAX };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, false);
	expect(&s, ENTERED);
	assert_true(is_raw(&s));
	kill(s.job, SIGTERM);
	expect(&s, "!");
	kill(s.job, SIGTERM);
	event(&s, 'e');
	assert_true(is_restored(&s));
	expect(&s, LEFT);
	reap(&s, &rep);
	assert_true(rep.end.exited);
	assert_int_equal(rep.end.wait_status, SIGKILL);
}

static void play_hangup(const struct fake_job *job)
{
	int32_t sig;
	char c;

	(void)job;
	signal(SIGHUP, SIG_IGN);
	fake_send(CTL_STARTED, 1);
	put(1, "up", 2);
	sig = fake_expect(CTL_SIGNAL);
	/* The terminal inside is dead as well. */
	while (read(0, &c, 1) > 0)
		;
	fake_exit(0, (uint64_t)sig);
}

static void test_hangup(void **state)
{
	struct fake_job job = { .play = play_hangup };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, false);
	expect(&s, "up");
	close(s.term);
	s.term = -1;
	reap(&s, &rep);
	assert_int_equal(rep.end.renames, SIGHUP);
}

static void play_stderr(const struct fake_job *job)
{
	(void)job;
	fake_send(CTL_STARTED, 1);
	put(1, "out", 3);
	put(2, "err", 3);
	fake_exit(0, (uint64_t)isatty(2));
}

static void test_stderr_elsewhere(void **state)
{
	struct fake_job job = { .play = play_stderr };
	struct fake_report rep;
	struct shell s;
	int err = scratch_file(0);
	char buf[3];

	(void)state;
	job.fds[2] = err;
	start(&s, &job, false);
	expect(&s, "out");
	finish(&s, &rep);
	assert_int_equal(rep.end.renames, 0);
	lseek(err, 0, SEEK_SET);
	assert_true(get(err, buf, 3));
	assert_memory_equal(buf, "err", 3);
	close(err);
}

/* 60 kB in the pty's buffers when PID 1 goes. */
static void play_much(const struct fake_job *job)
{
	static char buf[60000];

	(void)job;
	inner_raw();
	memset(buf, 'w', sizeof(buf));
	fake_send(CTL_STARTED, 1);
	put(1, buf, sizeof(buf));
	fake_exit(0, 0);
}

static void test_last_words(void **state)
{
	static char buf[60000], want[60000];
	struct fake_job job = { .play = play_much };
	struct fake_report rep;
	struct shell s;

	(void)state;
	start(&s, &job, false);
	assert_true(get(s.term, buf, sizeof(buf)));
	memset(want, 'w', sizeof(want));
	assert_memory_equal(buf, want, sizeof(buf));
	finish(&s, &rep);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raw_and_size),
		cmocka_unit_test(test_stop_and_go),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_started_behind),
		cmocka_unit_test(test_orphan),
		cmocka_unit_test(test_stop_after_output),
		cmocka_unit_test(test_ends_behind),
		cmocka_unit_test(test_modes_reset),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_hangup),
		cmocka_unit_test(test_stderr_elsewhere),
		cmocka_unit_test(test_last_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
