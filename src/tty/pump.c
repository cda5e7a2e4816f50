/* SPDX-License-Identifier: Apache-2.0 */
#include "tty/pump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "tty/pipe_input.h"

/* Buffers moved before the other descriptors get their turn. */
#define ROUNDS 16

#define GONE (POLLERR | POLLHUP | POLLNVAL)

void pump_init(struct pump *p)
{
	memset(p, 0, sizeof(*p));
	p->in = p->out = p->file = p->probe = p->null = -1;
	p->max_write = PUMP_BUF;
}

bool pump_active(const struct pump *p)
{
	return p->in >= 0 || p->len > 0;
}

void pump_poll(const struct pump *p, struct pollfd pf[2])
{
	bool fill = p->len == 0 && !p->paused;

	if (p->pipe_in) {
		pipe_input_poll(p, pf);
		return;
	}
	pf[0] = (struct pollfd){ .fd = fill ? p->in : -1, .events = POLLIN };
	/* Without events poll still tells that the reader is gone: then stdin must not be
	 * read any more. */
	pf[1] = (struct pollfd){ .fd = pump_active(p) ? p->out : -1,
				 .events = p->len > 0 ? POLLOUT : 0 };
}

static void close_in(struct pump *p)
{
	if (p->own_in && p->in >= 0)
		close(p->in);
	p->in = -1;
}

void pump_close_out(struct pump *p)
{
	if (p->own_out && p->out >= 0)
		close(p->out);
	p->out = -1;
}

static void unread(struct pump *p)
{
	int inside = 0;

	if (ioctl(p->probe, FIONREAD, &inside) == 0 && (inside > 0 || p->len > 0))
		lseek(p->file, -((off_t)inside + (off_t)p->len), SEEK_CUR);
	close(p->probe);
	p->probe = -1;
}

void pump_shut(struct pump *p)
{
	if (p->probe >= 0)
		unread(p);
	if (p->pipe_in)
		pipe_input_settle(p);
	close_in(p);
	pump_close_out(p);
	p->len = 0;
	free(p->buf);
	p->buf = NULL;
}

/* Returns true if the buffer was filled. */
static bool fill(struct pump *p)
{
	ssize_t n;

	if (!p->buf)
		p->buf = xmalloc(PUMP_BUF);
	do
		n = p->in_sock ? recv(p->in, p->buf, PUMP_BUF, MSG_DONTWAIT)
			       : read(p->in, p->buf, PUMP_BUF);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		p->off = 0;
		p->len = (uint32_t)n;
		p->passed += (uint64_t)n;
		if (p->modes)
			modes_feed(p->modes, p->buf, p->len);
		return true;
	}
	if (n < 0 && errno == EAGAIN && !p->final)
		return false;
	if (n < 0 && errno == EIO && p->in_tty) {
		p->paused = true;
		return false;
	}
	p->ended = true;
	close_in(p);
	return false;
}

/* Returns false if out takes no more for now. */
static bool flush(struct pump *p)
{
	uint32_t want = p->len < p->max_write ? p->len : p->max_write;
	ssize_t n;

	if (p->discard) {
		p->len = 0;
		return true;
	}
	do
		n = p->out_sock ? send(p->out, p->buf + p->off, want,
				       MSG_DONTWAIT | MSG_NOSIGNAL)
				: write(p->out, p->buf + p->off, want);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		p->last = p->buf[p->off + (uint32_t)n - 1];
	if (n >= 0) {
		p->off += (uint32_t)n;
		p->len -= (uint32_t)n;
		return p->out_ready;
	}
	if (errno != EAGAIN) {
		if (errno != EPIPE && errno != ECONNRESET)
			p->err = errno;
		pump_shut(p);
	}
	return false;
}

static void run(struct pump *p, bool readable, bool writable)
{
	int rounds = ROUNDS;

	writable = writable || p->out_ready || p->discard;
	while (pump_active(p) && (p->final || rounds-- > 0)) {
		if (p->len == 0) {
			if (p->in < 0 || p->paused || !readable || !fill(p))
				return;
			readable = p->in_ready || p->in_sock;
		}
		while (p->len > 0) {
			if (!writable)
				return;
			writable = flush(p);
		}
	}
}

void pump_run(struct pump *p, const struct pollfd pf[2])
{
	if (p->pipe_in) {
		pipe_input_run(p, pf);
		return;
	}
	if (pf[1].revents & GONE)
		pump_shut(p);
	run(p, p->final || pf[0].revents, pf[1].revents & POLLOUT);
}

void pump_drain(struct pump *p)
{
	run(p, true, false);
}

void pump_load(struct pump *p, const char *s, size_t len)
{
	if (p->out < 0 || len > PUMP_BUF)
		return;
	if (!p->buf)
		p->buf = xmalloc(PUMP_BUF);
	memcpy(p->buf, s, len);
	p->off = 0;
	p->len = (uint32_t)len;
}
