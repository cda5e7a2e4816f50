/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "ckpt/apply.h"
#include "ckpt/ckpt.h"
#include "ctl/ctl.h"
#include "ctl/live.h"
#include "sys/fs.h"

enum { FROZEN_MAX_MS = 120000, FDS_MAX = 1024, NAMES_MAX = 1 << 20 };

int control_open(struct control *c, const char *dir)
{
	AUTO_CLOSE int at = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	*c = (struct control){
		.listen = -1, .client = -1, .names = -1, .steps = -1, .mark = -1
	};
	if (at < 0)
		return -errno;
	/*
	 * The name goes through a descriptor, since the path may be longer than a socket
	 * address.
	 */
	snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d/" LIVE_NAME, at);
	c->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen < 0)
		return -errno;
	unlinkat(at, LIVE_NAME, 0);
	if (bind(c->listen, (struct sockaddr *)&name, sizeof(name)) < 0 ||
	    listen(c->listen, 16) < 0)
		return -errno;
	return 0;
}

/* Closes all descriptors but the mark, which stays until the client that sent it has gone. */
static void forget_fds(struct control *c)
{
	for (size_t i = 0; i < c->nfds; i++)
		cleanup_close(&c->fds[i]);
	free(c->fds);
	c->fds = NULL;
	c->nfds = 0;
	cleanup_close(&c->names);
	cleanup_close(&c->steps);
	c->names = c->steps = -1;
}

static int set_mark(const struct control *c, char mark)
{
	return c->mark < 0 || pwrite(c->mark, &mark, 1, 0) == 1 ? 0 : -1;
}

/* Descriptors from the host are held only while all processes are stopped. */
static void thaw(struct control *c)
{
	forget_fds(c);
	if (c->frozen)
		freeze_thaw(&c->freeze);
	c->frozen = false;
	c->thaw_at = 0;
}

/*
 * No client is left to take back a change that is half done: the present state counts as the
 * command's, and recovery must not undo what the command does from here on.
 */
static void leave(struct control *c)
{
	set_mark(c, LIVE_WHOLE);
	cleanup_close(&c->mark);
	c->mark = -1;
	thaw(c);
}

/* Steps that have begun are carried out to their end, whoever asked for them. */
static void hang_up(struct control *c)
{
	cleanup_close(&c->client);
	c->client = -1;
	if (!c->helper) {
		leave(c);
		forget_fds(c);
	}
}

void control_poll(const struct control *c, struct pollfd p[CONTROL_POLLS])
{
	bool idle = c->client < 0 && !c->helper;

	p[0] = (struct pollfd){ .fd = idle ? c->listen : -1, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = c->client, .events = POLLIN };
}

int control_wait_ms(const struct control *c)
{
	int64_t left;

	if (!c->thaw_at)
		return -1;
	left = c->thaw_at - clock_ms(CLOCK_MONOTONIC);
	return left < 0 ? 0 : (int)left;
}

static void reply(struct control *c, const struct err *e, int fd)
{
	struct ctl_msg m = { .type = e ? CTL_ERROR : CTL_DONE };

	if (e)
		m.err = *e;
	if (c->client >= 0 && ctl_send(c->client, &m, fd, MSG_DONTWAIT) < 0)
		hang_up(c);
}

static void refuse(struct control *c, int r, const char *what)
{
	struct err e = { 0 };

	err_sys(&e, r, "%s", what);
	reply(c, &e, -1);
}

static void do_freeze(struct control *c)
{
	int r = c->frozen ? 0 : freeze_all(&c->freeze, c->helpers);
	AUTO_CLOSE int written = -1;

	if (r < 0) {
		refuse(c, r, "the processes cannot be stopped");
		return;
	}
	c->frozen = true;
	c->thaw_at = clock_ms(CLOCK_MONOTONIC) + FROZEN_MAX_MS;
	written = freeze_written();
	if (written < 0)
		refuse(c, written, "cannot see what is written to");
	else
		reply(c, NULL, written);
}

/* If a process has run since, the layers may have changed; if none has, they have not. */
static void do_still(struct control *c, uint64_t state)
{
	struct ctl_msg m = { .type = CTL_DONE };

	c->seen = c->frozen ? 0 : freeze_still();
	c->seen_at = clock_ms(CLOCK_MONOTONIC);
	m.value = c->seen && c->seen == c->still && c->state == state &&
		  c->seen_at - c->still_at > STILL_MS;
	if (ctl_send(c->client, &m, -1, MSG_DONTWAIT) < 0)
		hang_up(c);
}

static void do_settled(struct control *c, uint64_t state)
{
	c->still = c->seen;
	c->still_at = c->seen_at;
	c->state = state;
	reply(c, NULL, -1);
}

static void do_untouched(struct control *c)
{
	struct ctl_msg m = { .type = CTL_DONE, .extra = idle_layers_untouched(c->far) };

	if (ctl_send(c->client, &m, -1, MSG_DONTWAIT) < 0)
		hang_up(c);
}

static void take_fd(struct control *c, const struct ctl_msg *m, int *fd)
{
	int *slot = m->value == LIVE_NAMES   ? &c->names
		    : m->value == LIVE_STEPS ? &c->steps
		    : m->value == LIVE_MARK  ? &c->mark
					     : NULL;
	size_t i = (size_t)m->extra;

	if (m->value == LIVE_LAYER && i < FDS_MAX) {
		if (i >= c->nfds) {
			c->fds = xrealloc(c->fds, (i + 1) * sizeof(*c->fds));
			while (c->nfds <= i)
				c->fds[c->nfds++] = -1;
		}
		slot = &c->fds[i];
	}
	if (!slot || !c->frozen)
		return;
	cleanup_close(slot);
	*slot = TAKE_FD(*fd);
}

/*
 * Reads the names of the layers: "path\0lax\0", then hidden paths, each with a mark before it.
 */
static bool read_names(int fd, struct buf *b)
{
	char chunk[4096];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0 && at < NAMES_MAX) {
		buf_add(b, chunk, (size_t)n);
		at += n;
	}
	return n == 0 && b->len && b->data[b->len - 1] == '\0';
}

/*
 * The descriptor that came for layer @i; -1: none was sent, since the layer is not on the
 * host.
 */
static int came(const struct control *c, size_t i)
{
	return i < c->nfds ? c->fds[i] : -1;
}

/*
 * Opens a layer at its place in the view. The inside may have put a link, or another
 * directory, on the way to it.
 */
static int open_layer(const char *path)
{
	AUTO_CLOSE int fd = fs_open_view(path, O_RDONLY | O_DIRECTORY, false);
	struct statx x;

	if (fd < 0)
		return fd;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &x) < 0)
		return -errno;
	return x.stx_attributes & STATX_ATTR_MOUNT_ROOT ? TAKE_FD(fd) : -ESTALE;
}

static int open_layers(const struct control *c, const struct buf *names,
		       struct ck_layers *layers)
{
	const char *p = buf_str(names), *end = p + names->len;
	const char **hidden = xcalloc(names->len / 2 + 2, sizeof(*hidden));
	size_t n = 0;

	layers->v = xcalloc(FDS_MAX / 2, sizeof(*layers->v));
	for (; p < end; p += strlen(p) + 1) {
		struct ck_layer *l = &layers->v[layers->n];

		if (*p == 'H') {
			hidden[n++] = p + 1;
			continue;
		}
		if ((*p != 'L' && *p != 'l') || layers->n >= FDS_MAX / 2)
			return -EPROTO;
		*l = (struct ck_layer){ .path = p + 1,
					.lax = *p == 'l',
					.merged = true,
					.hidden = hidden,
					.live = -1,
					.past = -1,
					.host = came(c, 2 * layers->n),
					.objects = came(c, 2 * layers->n + 1) };
		l->up = open_layer(l->path);
		if (l->up < 0)
			return l->up;
		layers->n++;
	}
	return 0;
}

/*
 * The helper carries out the steps with PID 1's rights, in its view of the tree, which is the
 * command's.
 */
_Noreturn static void help(const struct control *c)
{
	AUTO_BUF struct buf names = BUF_INIT;
	struct ck_layers layers = { 0 };
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = read_names(c->names, &names) ? open_layers(c, &names, &layers) : -EPROTO;
	if (r < 0) {
		err_sys(c->report, r, "cannot open the layers from inside");
		_exit(1);
	}
	if (set_mark(c, LIVE_HALF) < 0) {
		err_sys(c->report, errno, "cannot note that the change begins");
		_exit(1);
	}
	if (ck_carry_out(&layers, c->steps, c->report) < 0)
		_exit(1);
	if (FAULT_POINT("live.mark") || set_mark(c, LIVE_DONE) < 0) {
		err_sys(c->report, EIO, "cannot note that the change is done");
		_exit(1);
	}
	_exit(FAULT_POINT("live.marked") ? 1 : 0);
}

static void do_apply(struct control *c)
{
	if (!c->frozen || c->names < 0 || c->steps < 0) {
		refuse(c, -EPROTO, "steps come before their time");
		return;
	}
	c->still = c->seen = 0;
	c->report = mmap(NULL, sizeof(*c->report), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->report == MAP_FAILED) {
		refuse(c, -errno, "no memory");
		return;
	}
	c->helper = fork();
	if (c->helper == 0)
		help(c);
	if (c->helper > 0) {
		c->thaw_at = 0;
		return;
	}
	c->helper = 0;
	refuse(c, -errno, "cannot fork");
}

bool control_reaped(struct control *c, pid_t pid, int status)
{
	if (!c->helper || pid != c->helper)
		return false;
	/* The helper was stopped by somebody: the steps are not done. */
	if (WIFSTOPPED(status))
		return true;
	c->helper = 0;
	if (status && !c->report->kind)
		err_set(c->report, ERR_SYSTEM, "what puts the files back has died");
	if (c->client < 0) {
		leave(c);
	} else {
		c->thaw_at = clock_ms(CLOCK_MONOTONIC) + FROZEN_MAX_MS;
		reply(c, status ? c->report : NULL, -1);
	}
	munmap(c->report, sizeof(*c->report));
	forget_fds(c);
	return true;
}

static void hear(struct control *c)
{
	struct ctl_msg m;
	AUTO_CLOSE int fd = -1;
	int r = ctl_recv(c->client, &m, &fd, MSG_DONTWAIT);

	if (r == -EAGAIN)
		return;
	if (r != 1) {
		hang_up(c);
		return;
	}
	switch (m.type) {
	case CTL_FREEZE:
		do_freeze(c);
		break;
	case CTL_THAW:
		if (!c->helper)
			thaw(c);
		reply(c, NULL, -1);
		break;
	case CTL_KILL:
		freeze_kill_others(c->child, c->helpers);
		reply(c, NULL, -1);
		break;
	case CTL_STILL:
		do_still(c, m.extra);
		break;
	case CTL_SETTLED:
		do_settled(c, m.extra);
		break;
	case CTL_UNTOUCHED:
		do_untouched(c);
		break;
	case CTL_FD:
		take_fd(c, &m, &fd);
		break;
	case CTL_APPLY:
		do_apply(c);
		break;
	default:
		hang_up(c);
	}
}

static void welcome(struct control *c)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	c->client = accept4(c->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->client < 0)
		return;
	/* Only the user can reach the directory; this check holds even if others could. */
	if (getsockopt(c->client, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    peer.uid != geteuid())
		hang_up(c);
}

void control_serve(struct control *c, const struct pollfd p[CONTROL_POLLS])
{
	if (c->thaw_at && clock_ms(CLOCK_MONOTONIC) >= c->thaw_at) {
		log_debug("a client keeps everything stopped for too long");
		hang_up(c);
		return;
	}
	if (p[1].fd >= 0 && p[1].fd == c->client && p[1].revents)
		hear(c);
	if (p[0].fd >= 0 && p[0].revents)
		welcome(c);
}
