/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/exits.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Of <linux/pidfd.h>, which may be older than the kernel. */
struct info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};
_Static_assert(sizeof(struct info) == 64, "the first version of struct pidfd_info");
#define GET_INFO _IOWR(0xFF, 11, struct info)
enum { INFO_EXIT = 1 << 3 };

/* The kernel shows in its answer about ourselves whether it knows the question. */
static bool possible(void)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct info i = { .mask = INFO_EXIT };

	/*
	 * An older kernel may answer anything in this bit; from 6.15 on it is ESRCH or no bit.
	 */
	return fd >= 0 && (ioctl(fd, GET_INFO, &i) == 0 || errno == ESRCH);
}

void exits_open(struct exits *x)
{
	x->n = x->known = 0;
	x->epoll = possible() ? epoll_create1(EPOLL_CLOEXEC) : -1;
}

void exits_close(struct exits *x)
{
	while (x->n)
		close(x->fds[--x->n]);
	cleanup_close(&x->epoll);
}

static unsigned find(const struct exits *x, pid_t pid)
{
	unsigned i = 0;

	while (i < x->n && x->pids[i] != pid)
		i++;
	return i;
}

int exits_hold(pid_t pid, pid_t *parent)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct info i = { 0 };

	if (parent)
		*parent = fd >= 0 && ioctl(fd, GET_INFO, &i) == 0 ? (pid_t)i.ppid : 0;
	return fd;
}

void exits_watch(struct exits *x, pid_t pid, int fd)
{
	AUTO_CLOSE int own = fd;

	if (x->epoll < 0 || own < 0 || x->n == EXITS_MAX || exits_has(x, pid))
		return;
	x->pids[x->n] = pid;
	x->fds[x->n++] = TAKE_FD(own);
}

bool exits_has(const struct exits *x, pid_t pid)
{
	return find(x, pid) < x->n;
}

bool exits_full(const struct exits *x)
{
	return x->n == EXITS_MAX;
}

bool exits_unseen(const struct exits *x)
{
	return x->known < x->n;
}

static void move(struct exits *x, unsigned from, unsigned to)
{
	x->fds[to] = x->fds[from];
	x->pids[to] = x->pids[from];
}

static bool take(struct exits *x, unsigned at, struct exit_note *to)
{
	struct info i = { .mask = INFO_EXIT };
	bool told;

	told = ioctl(x->fds[at], GET_INFO, &i) == 0 && i.mask & INFO_EXIT;
	*to = (struct exit_note){ x->pids[at], i.exit_code };
	close(x->fds[at]);
	if (at < x->known) {
		move(x, --x->known, at);
		at = x->known;
	}
	move(x, --x->n, at);
	return told;
}

/*
 * Looks at the new ones: most have ended by the first look, the others are added to the epoll
 * instance.
 */
static unsigned take_new(struct exits *x, struct exit_note v[EXITS_AT_ONCE])
{
	unsigned n = x->n - x->known, first, taken = 0;
	/* No events are asked for: a pidfd hangs up when its process has been waited for. */
	struct pollfd p[EXITS_AT_ONCE] = { 0 };

	if (n > EXITS_AT_ONCE)
		n = EXITS_AT_ONCE;
	first = x->n - n;
	for (unsigned i = 0; i < n; i++)
		p[i].fd = x->fds[first + i];
	if (poll(p, n, 0) < 0)
		return 0;
	/*
	 * From the last to the first: the entry that takes the place of a removed one has been
	 * looked at.
	 */
	for (unsigned i = n; i--;)
		if (p[i].revents)
			taken += take(x, first + i, &v[taken]);
	return taken;
}

static void await_new(struct exits *x)
{
	while (x->known < x->n) {
		struct epoll_event e = { .data.u64 = (uint64_t)x->pids[x->known] };

		if (epoll_ctl(x->epoll, EPOLL_CTL_ADD, x->fds[x->known], &e) == 0) {
			x->known++;
			continue;
		}
		close(x->fds[x->known]);
		move(x, --x->n, x->known);
	}
}

unsigned exits_take(struct exits *x, struct exit_note v[EXITS_AT_ONCE], bool *more)
{
	struct epoll_event e[EXITS_AT_ONCE];
	unsigned taken = 0, at;
	int n;

	*more = true;
	if (exits_unseen(x))
		taken = take_new(x, v);
	if (taken)
		return taken;
	await_new(x);
	n = x->n ? epoll_wait(x->epoll, e, EXITS_AT_ONCE, 0) : 0;
	for (int i = 0; i < n; i++) {
		at = find(x, (pid_t)e[i].data.u64);
		taken += at < x->n && take(x, at, &v[taken]);
	}
	*more = n == EXITS_AT_ONCE;
	return taken;
}
