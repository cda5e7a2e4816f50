/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "ctl/ctl.h"

struct live {
	int sock;
	int64_t since, paused; /* ns */
	bool ended;	       /* nobody is there any more */
};

/* How long to wait for an answer that is not essential. */
enum { PATIENCE_S = 5 };

static int open_patiently(const char *dir, int seconds, struct live **out, struct err *e)
{
	const struct timeval patience = { .tv_sec = seconds };
	AUTO_CLOSE int at = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	if (at < 0 || sock < 0)
		return err_sys(e, errno, "cannot reach the sandbox");
	if (seconds) {
		setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	}
	snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d/" LIVE_NAME, at);
	if (connect(sock, (struct sockaddr *)&name, sizeof(name)) < 0) {
		err_sys(e, errno, "cannot reach the sandbox");
		e->kind = ERR_STATE;
		return err_hint(e, "try again: it is just beginning, or ending");
	}
	*out = xcalloc(1, sizeof(**out));
	(*out)->sock = TAKE_FD(sock);
	return 0;
}

int live_open(const char *dir, struct live **out, struct err *e)
{
	return open_patiently(dir, 0, out, e);
}

void live_close(struct live *l)
{
	if (!l)
		return;
	close(l->sock);
	free(l);
}

static int has_ended(struct live *l, struct err *e)
{
	l->ended = true;
	return err_set(e, ERR_STATE, "the sandbox has ended meanwhile");
}

static int await(struct live *l, int *fd, struct err *e)
{
	struct ctl_msg m;
	int got = -1;
	int r = ctl_recv(l->sock, &m, &got, 0);

	if (fd)
		*fd = TAKE_FD(got);
	cleanup_close(&got);
	if (r != 1)
		return has_ended(l, e);
	if (m.type == CTL_DONE)
		return 0;
	*e = m.err;
	if (!e->kind)
		err_set(e, ERR_SYSTEM, "the sandbox does not understand");
	return -1;
}

static int ask(struct live *l, enum ctl_type type, int *fd, struct err *e)
{
	int r = ctl_send_value(l->sock, type, 0, 0);

	if (r < 0)
		return has_ended(l, e);
	return await(l, fd, e);
}

int live_freeze(struct live *l, char **written, size_t *len, struct err *e)
{
	AUTO_CLOSE int fd = -1;
	struct buf b = BUF_INIT;
	char chunk[4096];
	off_t at = 0;
	ssize_t n;

	l->since = clock_ns(CLOCK_MONOTONIC);
	if (ask(l, CTL_FREEZE, &fd, e) < 0)
		return -1;
	while (fd >= 0 && (n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		buf_add(&b, chunk, (size_t)n);
		at += n;
	}
	*len = b.len;
	*written = buf_take(&b);
	return 0;
}

int live_thaw(struct live *l, struct err *e)
{
	int r = ask(l, CTL_THAW, NULL, e);

	if (l->since)
		l->paused += clock_ns(CLOCK_MONOTONIC) - l->since;
	l->since = 0;
	return r;
}

/* Sends *m and receives the answer into it. */
static bool exchange(const struct live *l, struct ctl_msg *m)
{
	int fd = -1, r;

	if (ctl_send(l->sock, m, -1, 0) < 0)
		return false;
	r = ctl_recv(l->sock, m, &fd, 0);
	cleanup_close(&fd);
	return r == 1 && m->type == CTL_DONE;
}

bool live_still(struct live *l, uint64_t state)
{
	struct ctl_msg m = { .type = CTL_STILL, .extra = state };

	return exchange(l, &m) && m.value == 1;
}

uint64_t live_untouched(const char *dir)
{
	struct ctl_msg m = { .type = CTL_UNTOUCHED };
	struct live *l = NULL;
	struct err ignored;
	bool answered = open_patiently(dir, PATIENCE_S, &l, &ignored) == 0 &&
			exchange(l, &m);

	live_close(l);
	return answered ? m.extra : 0;
}

void live_settled(struct live *l, uint64_t state)
{
	struct ctl_msg m = { .type = CTL_SETTLED, .extra = state };
	struct err ignored;

	if (ctl_send(l->sock, &m, -1, 0) == 0)
		await(l, NULL, &ignored);
}

int live_kill(struct live *l, struct err *e)
{
	return ask(l, CTL_KILL, NULL, e);
}

static int send_fd(struct live *l, enum live_fd kind, size_t i, int fd)
{
	struct ctl_msg m = { .type = CTL_FD, .value = kind, .extra = i };

	return fd < 0 ? 0 : ctl_send(l->sock, &m, fd, 0);
}

static void name_layers(const struct ck_layers *layers, struct buf *b)
{
	const char *const *p;

	for (size_t i = 0; i < layers->n; i++)
		buf_addf(b, "%c%s%c", layers->v[i].lax ? 'l' : 'L', layers->v[i].path, 0);
	if (!layers->n)
		return;
	for (p = layers->v[0].hidden; p && *p; p++)
		buf_addf(b, "H%s%c", *p, 0);
	for (p = layers->v[0].never; p && *p; p++)
		buf_addf(b, "H%s%c", *p, 0);
}

/*
 * The helper that carries the steps out has the socket, too: once that is closed, the mark is
 * final.
 */
static bool was_done(int mark)
{
	char is;

	return pread(mark, &is, 1, 0) == 1 && is == LIVE_DONE;
}

int live_apply(struct live *l, const struct ck_layers *layers, int steps, int mark,
	       struct err *e)
{
	AUTO_CLOSE int names = memfd_create("names", MFD_CLOEXEC);
	AUTO_BUF struct buf b = BUF_INIT;
	int r;

	name_layers(layers, &b);
	if (names < 0 || write(names, buf_str(&b), b.len) != (ssize_t)b.len)
		return err_sys(e, errno, "no memory");
	r = send_fd(l, LIVE_NAMES, 0, names);
	if (r == 0)
		r = send_fd(l, LIVE_STEPS, 0, steps);
	if (r == 0)
		r = send_fd(l, LIVE_MARK, 0, mark);
	for (size_t i = 0; i < layers->n && r == 0; i++) {
		r = send_fd(l, LIVE_LAYER, 2 * i, layers->v[i].host);
		if (r == 0)
			r = send_fd(l, LIVE_LAYER, 2 * i + 1, layers->v[i].objects);
	}
	if (r < 0)
		return has_ended(l, e);
	r = ask(l, CTL_APPLY, NULL, e);
	return r < 0 && l->ended && was_done(mark) ? 0 : r;
}

void live_await_end(const char *dir)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	struct live *l;
	struct err e;

	/* The socket is open as long as PID 1 or its helper lives. */
	for (int i = 0; i < 3000 && live_open(dir, &l, &e) == 0; i++) {
		live_close(l);
		nanosleep(&moment, NULL);
	}
}

int64_t live_paused_us(const struct live *l)
{
	return l->paused / 1000;
}
