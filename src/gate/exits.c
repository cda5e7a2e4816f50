/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/exits.h"

#include <errno.h>
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

/* Whether the kernel knows the question shows in its answer about ourselves. */
static bool possible(void)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct info i = { .mask = INFO_EXIT };

	/* A kernel without it leaves the bit's meaning to chance; 6.15 says ESRCH or no bit. */
	return fd >= 0 && (ioctl(fd, GET_INFO, &i) == 0 || errno == ESRCH);
}

void exits_open(struct exits *x)
{
	x->n = 0;
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
	/* No events asked for: a pidfd hangs up when its process has been waited for. */
	struct epoll_event e = { .data.u64 = (uint64_t)pid };
	AUTO_CLOSE int own = fd;

	if (x->epoll < 0 || x->n == EXITS_MAX || find(x, pid) < x->n)
		return;
	if (own < 0 || epoll_ctl(x->epoll, EPOLL_CTL_ADD, own, &e) < 0)
		return;
	x->pids[x->n] = pid;
	x->fds[x->n++] = TAKE_FD(own);
}

static bool take(struct exits *x, pid_t pid, struct exit_note *to)
{
	struct info i = { .mask = INFO_EXIT };
	unsigned at = find(x, pid);
	bool known;

	if (at == x->n)
		return false; /* cannot be: they are kept together */
	known = ioctl(x->fds[at], GET_INFO, &i) == 0 && i.mask & INFO_EXIT;
	*to = (struct exit_note){ pid, i.exit_code };
	close(x->fds[at]);
	x->fds[at] = x->fds[--x->n];
	x->pids[at] = x->pids[x->n];
	return known;
}

unsigned exits_take(struct exits *x, struct exit_note v[EXITS_AT_ONCE], bool *more)
{
	struct epoll_event e[EXITS_AT_ONCE];
	int n = x->n ? epoll_wait(x->epoll, e, EXITS_AT_ONCE, 0) : 0;
	unsigned taken = 0;

	for (int i = 0; i < n; i++)
		taken += take(x, (pid_t)e[i].data.u64, &v[taken]);
	*more = n == EXITS_AT_ONCE;
	return taken;
}
