/* SPDX-License-Identifier: Apache-2.0 */
#include "relay_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Exit codes of the helpers, so that a failing test says where. */
enum { BAD_SETUP = 90, BAD_MESSAGE = 91 };

bool put(int fd, const void *data, size_t len)
{
	const char *s = data;

	while (len > 0) {
		ssize_t n = write(fd, s, len);

		if (n <= 0)
			return false;
		s += n;
		len -= (size_t)n;
	}
	return true;
}

bool get(int fd, void *data, size_t len)
{
	char *s = data;

	while (len > 0) {
		ssize_t n = read(fd, s, len);

		if (n <= 0)
			return false;
		s += n;
		len -= (size_t)n;
	}
	return true;
}

uint64_t checksum(uint64_t sum, const unsigned char *s, size_t len)
{
	while (len-- > 0)
		sum = (sum ^ *s++) * 1099511628211U;
	return sum;
}

uint64_t file_checksum(int fd, uint64_t *len)
{
	static unsigned char buf[65536];
	uint64_t sum = 0;
	ssize_t n;

	*len = 0;
	while ((n = pread(fd, buf, sizeof(buf), (off_t)*len)) > 0) {
		sum = checksum(sum, buf, (size_t)n);
		*len += (uint64_t)n;
	}
	return sum;
}

int scratch_file(size_t len)
{
	const char *tmp = getenv("TMPDIR");
	uint64_t x = 88172645463325252U;
	uint64_t block[512];
	char path[4096];
	size_t i, k;
	int fd;

	snprintf(path, sizeof(path), "%s/relay.XXXXXX", tmp ? tmp : "/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0 || unlink(path))
		abort();
	for (i = 0; i < len; i += sizeof(block)) {
		for (k = 0; k < ARRAY_SIZE(block); k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			block[k] = x;
		}
		if (!put(fd, block, len - i < sizeof(block) ? len - i : sizeof(block)))
			abort();
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

void fake_send(enum ctl_type type, int32_t value)
{
	if (ctl_send_value(FAKE_CTL, type, value, 0))
		_exit(BAD_MESSAGE);
}

void fake_exit(int wait_status, uint64_t extra)
{
	struct ctl_msg m = { .type = CTL_EXITED, .value = wait_status, .extra = extra };

	ctl_send(FAKE_CTL, &m, -1, 0);
	_exit(0);
}

int32_t fake_expect(enum ctl_type type)
{
	struct ctl_msg m;
	int fd;

	if (ctl_recv(FAKE_CTL, &m, &fd, 0) != 1 || m.type != type)
		_exit(BAD_MESSAGE);
	return m.value;
}

static void make_pty(const struct relay *r, int ctl, int *slave)
{
	struct ctl_msg m = { .type = CTL_PTY };
	int master;

	if (setsid() < 0 || openpty(&master, slave, NULL, NULL, NULL))
		_exit(BAD_SETUP);
	relay_pty_init(r, master);
	if (ioctl(*slave, TIOCSCTTY, 0) || ctl_send(ctl, &m, master, 0))
		_exit(BAD_SETUP);
}

static _Noreturn void fake_init(const struct fake_job *job, const struct relay *r,
				int ctl)
{
	int fds[3], slave = -1, i;

	alarm(HARNESS_LIMIT);
	relay_child_fds(r, fds);
	if (relay_wants_pty(r))
		make_pty(r, ctl, &slave);
	for (i = 0; i < 3; i++)
		fds[i] = fcntl(fds[i] < 0 ? slave : fds[i], F_DUPFD, 20);
	ctl = fcntl(ctl, F_DUPFD, 20);
	for (i = 0; i < 3; i++)
		dup2(fds[i], i);
	dup2(ctl, FAKE_CTL);
	close_range(FAKE_CTL + 1, ~0U, 0);
	job->play(job);
	_exit(0);
}

static void set_stdio(const struct fake_job *job)
{
	int fds[3], i;

	for (i = 0; i < 3; i++)
		fds[i] = job->fds[i] < 0 ? -1 : fcntl(job->fds[i], F_DUPFD, 20);
	for (i = 0; i < 3; i++) {
		close(i);
		if (fds[i] >= 0) {
			dup2(fds[i], i);
			close(fds[i]);
		}
	}
}

static bool same_signals(const sigset_t *mask, const struct sigaction *pipe_action)
{
	struct sigaction act;
	sigset_t now;
	int s;

	sigprocmask(SIG_BLOCK, NULL, &now);
	sigaction(SIGPIPE, NULL, &act);
	for (s = 1; s < 32; s++)
		if (sigismember(mask, s) != sigismember(&now, s))
			return false;
	return act.sa_handler == pipe_action->sa_handler;
}

void harness_caller(const struct fake_job *job, int report)
{
	struct fake_report rep = { 0 };
	struct relay *r = NULL;
	struct sigaction act;
	int ctl[2], pidfd, high;
	sigset_t mask;
	pid_t pid;

	alarm(HARNESS_LIMIT);
	high = fcntl(report, F_DUPFD_CLOEXEC, 30);
	set_stdio(job);
	/* What the test itself has open would keep ends of pipes alive. */
	close_range(3, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0U, 0);
	if (job->ignore)
		signal(job->ignore, SIG_IGN);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigaction(SIGPIPE, NULL, &act);
	rep.rc = relay_new(&(struct relay_wish){ .want_tty = job->want_tty,
						 .grace_ms = job->grace_ms },
			   &r, &rep.e);
	if (rep.rc || fcntl(ctl_pair(ctl) ? -1 : ctl[0], F_GETFD) < 0)
		_exit(BAD_SETUP);
	rep.pty = relay_wants_pty(r);
	pid = fork();
	if (pid == 0)
		fake_init(job, r, ctl[1]);
	close(ctl[1]);
	pidfd = pidfd_open(pid, 0);
	relay_forked(r);
	rep.rc = relay_loop(r, ctl[0], pidfd, job->timeout_ms, &rep.end, &rep.e);
	rep.signals_kept = same_signals(&mask, &act);
	relay_free(r);
	waitpid(pid, NULL, 0);
	put(high, &rep, sizeof(rep));
	_exit(0);
}

pid_t harness_start(const struct fake_job *job, int *report)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		abort();
	pid = fork();
	if (pid == 0)
		harness_caller(job, fds[1]);
	close(fds[1]);
	*report = fds[0];
	return pid;
}

bool harness_end(pid_t pid, int report, struct fake_report *out)
{
	bool ok = get(report, out, sizeof(*out));

	close(report);
	waitpid(pid, NULL, 0);
	return ok;
}

bool harness_run(const struct fake_job *job, struct fake_report *out)
{
	int report;
	pid_t pid = harness_start(job, &report);

	return harness_end(pid, report, out);
}
