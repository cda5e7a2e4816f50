/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/inside_socket.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/*
 * Each request uses up PRICE_MS of a credit of BURST_MS, which comes back with time: a burst
 * of requests is served at once, then one in PRICE_MS.
 */
enum { PRICE_MS = 100, BURST_MS = 2000, LAST_MS = 10000, SHARE = 20, REST_MS = 30000 };

int inside_socket_make(struct inside_socket *d, const struct inside_calls *calls)
{
	*d = (struct inside_socket){ .calls = calls, .listen = -1, .visitor = -1 };
	if (!calls)
		return 0;
	d->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return d->listen < 0 ? -errno : 0;
}

int inside_socket_bind(int fd)
{
	static const struct sockaddr_un name = { .sun_family = AF_UNIX,
						 .sun_path = INSIDE_SOCKET_PATH };

	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    chmod(INSIDE_SOCKET_PATH, 0666) < 0 || listen(fd, 8) < 0)
		return -errno;
	return 0;
}

void inside_socket_start(struct inside_socket *d)
{
	if (d->listen < 0)
		return;
	d->open = true;
	if (d->calls->every_ms)
		d->tick_at = clock_ms(CLOCK_MONOTONIC) + d->calls->every_ms;
}

/* The time until which no request is served, because the credit is used up. */
static int64_t rest_until(const struct inside_socket *d)
{
	return d->full_at - BURST_MS;
}

void inside_socket_poll(const struct inside_socket *d,
			struct pollfd p[INSIDE_SOCKET_POLLS])
{
	bool idle = d->open && d->visitor < 0 &&
		    clock_ms(CLOCK_MONOTONIC) >= rest_until(d);

	p[0] = (struct pollfd){ .fd = idle ? d->listen : -1, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = d->visitor, .events = POLLIN };
}

int64_t inside_socket_at(const struct inside_socket *d)
{
	int64_t rest = rest_until(d);

	if (!d->open || d->visitor >= 0)
		return 0;
	if (clock_ms(CLOCK_MONOTONIC) >= rest)
		return d->tick_at;
	return d->tick_at && d->tick_at < rest ? d->tick_at : rest;
}

/* The next interval is long enough for the cost of the last checkpoint, within bounds. */
static int64_t interval(const struct inside_socket *d, int64_t took)
{
	int64_t rest = SHARE * took < REST_MS ? SHARE * took : REST_MS;

	return d->calls->every_ms > rest ? d->calls->every_ms : rest;
}

static void farewell(struct inside_socket *d)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC);

	while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(TAKE_FD(d->visitor));
	if (d->tick)
		d->tick_at = now + interval(d, now - d->since);
	d->tick = false;
}

static void receive(struct inside_socket *d, int conn)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC);
	pid_t pid = d->calls->visit(d->calls->arg, conn);

	d->full_at = (d->full_at > now ? d->full_at : now) + PRICE_MS;
	if (pid < 0) {
		log_debug("nobody to answer: %s", strerror(-pid));
		return;
	}
	d->pid = pid;
	d->since = now;
	d->visitor = pidfd_open(pid, 0);
	/* Without a pidfd the end of the worker would not be seen. */
	if (d->visitor < 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

void inside_socket_serve(struct inside_socket *d,
			 const struct pollfd p[INSIDE_SOCKET_POLLS])
{
	AUTO_CLOSE int conn = -1;

	if (p[1].fd >= 0 && p[1].fd == d->visitor && p[1].revents)
		farewell(d);
	if (!d->open || d->visitor >= 0)
		return;
	if (d->tick_at && clock_ms(CLOCK_MONOTONIC) >= d->tick_at) {
		d->tick = true;
		d->tick_at = clock_ms(CLOCK_MONOTONIC) + d->calls->every_ms;
		receive(d, -1);
		d->tick = d->visitor >= 0;
		return;
	}
	if (p[0].fd < 0 || !p[0].revents)
		return;
	conn = accept4(d->listen, NULL, NULL, SOCK_CLOEXEC);
	if (conn >= 0)
		receive(d, conn);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		d->full_at = clock_ms(CLOCK_MONOTONIC) + BURST_MS +
			     PRICE_MS; /* no descriptors: later */
}

void inside_socket_close(struct inside_socket *d)
{
	struct pollfd p = { .fd = d->visitor, .events = POLLIN };

	d->open = false;
	if (d->visitor >= 0) {
		if (poll(&p, 1, LAST_MS) == 0)
			pidfd_send_signal(d->visitor, SIGKILL, NULL, 0);
		farewell(d);
	}
	cleanup_close(&d->listen);
	d->listen = -1;
}
