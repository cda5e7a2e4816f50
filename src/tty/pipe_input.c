/* SPDX-License-Identifier: Apache-2.0 */
#include "tty/pipe_input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Pieces moved before the other descriptors get their turn. */
#define ROUNDS 16

#define GONE (POLLERR | POLLHUP | POLLNVAL)

/* A pipe of one page has room again when all that was lent is read: poll(2) then says so. */
#define LENT_SIZE 4096

int pipe_input_init(struct pump *p)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0)
		return -errno;
	p->pipe_in = true;
	p->null = fcntl(null, F_DUPFD_CLOEXEC, 3);
	close(null);
	if (p->null < 0 || fcntl(p->out, F_SETPIPE_SZ, LENT_SIZE) < 0)
		return -errno;
	p->lent_room = fcntl(p->out, F_GETPIPE_SZ);
	return p->lent_room < 0 ? -errno : 0;
}

void pipe_input_poll(const struct pump *p, struct pollfd pf[2])
{
	bool fill = !p->paused && !p->full;

	pf[0] = (struct pollfd){ .fd = fill ? p->in : -1, .events = POLLIN };
	pf[1] = (struct pollfd){ .fd = pump_active(p) ? p->out : -1,
				 .events = !p->paused && p->full ? POLLOUT : 0 };
}

static uint32_t bytes_in(int fd)
{
	int n = 0;

	return ioctl(fd, FIONREAD, &n) < 0 || n < 0 ? 0 : (uint32_t)n;
}

/* Without waiting: another reader of the caller's pipe may have been faster. */
static void take_out(struct pump *p, uint32_t bytes)
{
	while (bytes > 0) {
		ssize_t n = splice(p->in, NULL, p->null, NULL, bytes, SPLICE_F_NONBLOCK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		bytes -= (uint32_t)n;
		p->passed += (uint64_t)n;
	}
}

void pipe_input_settle(struct pump *p)
{
	uint32_t left = p->lent > 0 && p->out >= 0 ? bytes_in(p->out) : 0;

	if (p->in >= 0 && p->lent > left)
		take_out(p, p->lent - left);
	p->lent = 0;
	if (p->null >= 0)
		close(p->null);
	p->null = -1;
}

static void begin_bulk(struct pump *p)
{
	fcntl(p->out, F_SETPIPE_SZ, PIPE_INPUT_EXACT);
	p->bulk = true;
}

static ssize_t give(struct pump *p)
{
	if (!p->bulk && p->passed >= PIPE_INPUT_EXACT)
		begin_bulk(p);
	if (p->bulk)
		return splice(p->in, NULL, p->out, NULL, PIPE_INPUT_EXACT,
			      SPLICE_F_NONBLOCK);
	return tee(p->in, p->out, LENT_SIZE, SPLICE_F_NONBLOCK);
}

/*
 * The command can enlarge its pipe. Then poll(2) calls it writable though the lent page is unread,
 * and we would be woken without end.
 */
static bool is_enlarged(const struct pump *p)
{
	return fcntl(p->out, F_GETPIPE_SZ) > p->lent_room;
}

/* Returns true if there may be more to do now. */
static bool move(struct pump *p)
{
	ssize_t n;

	if (p->lent > 0) {
		p->full = bytes_in(p->out) > 0;
		if (p->full && !is_enlarged(p))
			return false;
		take_out(p, p->lent);
		p->lent = 0;
		if (p->full)
			begin_bulk(p);
	}
	n = give(p);
	p->full = n > 0 && !p->bulk;
	if (n > 0 && p->bulk)
		p->passed += (uint64_t)n;
	else if (n > 0)
		p->lent = (uint32_t)n;
	else if (n < 0 && errno == EAGAIN)
		p->full = bytes_in(p->in) > 0;
	else if (n < 0 && errno == EPIPE)
		pump_shut(p);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EPIPE && errno != EINTR)) {
		p->ended = true;
		p->in = -1;
	}
	return n > 0 && p->bulk;
}

void pipe_input_run(struct pump *p, const struct pollfd pf[2])
{
	int rounds = ROUNDS;

	if (pf[1].revents & GONE) {
		pump_shut(p);
		return;
	}
	if (!pf[0].revents && !pf[1].revents)
		return;
	while (p->in >= 0 && !p->paused && rounds-- > 0 && move(p))
		;
}
