/* SPDX-License-Identifier: Apache-2.0 */
#include "tty/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tty/pipe_input.h"
#include "tty/tty.h"

/* Larger saves switches between us and the command; what is beyond the user's share of
 * pipe memory (fs.pipe-user-pages-soft) is refused, which is fine. */
#define PIPE_SIZE (256 * 1024)

/* Writes to a device that may block: little at a time, each after poll. */
#define SMALL_WRITE 256

enum kind {
	KIND_FIFO,    /* with a name or without one */
	KIND_NOTHING, /* closed, or /dev/null */
	KIND_FILE,    /* never blocks */
	KIND_SOCKET,
	KIND_TTY,
	KIND_OTHER,
};

static enum kind look(int fd, struct stat *st)
{
	if (fstat(fd, st))
		return KIND_NOTHING;
	if (S_ISFIFO(st->st_mode))
		return KIND_FIFO;
	if (S_ISSOCK(st->st_mode))
		return KIND_SOCKET;
	if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode) || S_ISDIR(st->st_mode))
		return KIND_FILE;
	if (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3))
		return KIND_NOTHING;
	return isatty(fd) ? KIND_TTY : KIND_OTHER;
}

static int above_stdio(int *fd)
{
	int high;

	if (*fd > 2)
		return 0;
	high = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
	if (high < 0)
		return -errno;
	close(*fd);
	*fd = high;
	return 0;
}

static int make_pipe(int *rd, int *wr)
{
	int fds[2], r1, r2;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	r1 = above_stdio(&fds[0]);
	r2 = above_stdio(&fds[1]);
	*rd = fds[0];
	*wr = fds[1];
	return r1 ? r1 : r2;
}

static void grow(int fd)
{
	fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE);
}

/* Only our end: each end of a pipe has flags of its own. */
static void no_wait(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void from_tty(struct pump *p, int fd)
{
	int own = tty_reopen(fd, O_RDONLY);

	p->in = own < 0 ? fd : own;
	p->own_in = p->in_ready = own >= 0;
	p->in_tty = true;
}

static void to_tty(struct pump *p, int fd)
{
	int own = tty_reopen(fd, O_WRONLY);

	p->out = own < 0 ? fd : own;
	p->own_out = p->out_ready = own >= 0;
	p->max_write = own < 0 ? SMALL_WRITE : PUMP_BUF;
}

/* Without a description of our own, what poll(2) promises of a pipe. */
static void to_fifo(struct pump *p, int fd)
{
	bool writes = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
	int own = writes ? tty_reopen(fd, O_WRONLY) : -1;

	if (own >= 0 && above_stdio(&own) < 0) {
		close(own);
		own = -1;
	}
	p->out = own < 0 ? fd : own;
	p->own_out = p->out_ready = own >= 0;
	p->max_write = own < 0 ? PIPE_BUF : PUMP_BUF;
}

static int open_in(struct streams *s, bool none)
{
	struct pump *p = &s->pump[0];
	struct stat st;
	enum kind kind = none ? KIND_NOTHING : look(0, &st);
	int r;

	p->own_out = true;
	r = make_pipe(&s->child[0], &p->out);
	if (r)
		return r;
	if (kind == KIND_NOTHING) {
		pump_close_out(p);
		return 0;
	}
	no_wait(p->out);
	p->out_ready = true;
	/* Nothing is taken from stdin before it is certain that the command starts. */
	p->paused = true;
	if (kind == KIND_TTY) {
		from_tty(p, 0);
		return 0;
	}
	p->in = 0;
	p->in_sock = kind == KIND_SOCKET;
	if (kind == KIND_FIFO)
		return pipe_input_init(p);
	if (S_ISREG(st.st_mode)) {
		grow(p->out);
		p->file = 0;
	}
	return 0;
}

/* @n: 1 or 2, for the command; @fd: where it goes. */
static int open_out(struct streams *s, int n, int fd, enum kind kind)
{
	struct pump *p = &s->pump[n];
	int r;

	p->own_in = true;
	r = make_pipe(&p->in, &s->child[n]);
	if (r)
		return r;
	no_wait(p->in);
	p->in_ready = true;
	if (n == 1)
		grow(p->in);
	if (kind == KIND_NOTHING) {
		p->discard = true;
	} else if (kind == KIND_TTY) {
		to_tty(p, fd);
	} else if (kind == KIND_FIFO) {
		to_fifo(p, fd);
	} else {
		p->out = fd;
		p->out_sock = kind == KIND_SOCKET;
		p->out_ready = p->out_sock || kind == KIND_FILE;
		p->max_write = p->out_ready ? PUMP_BUF : SMALL_WRITE;
	}
	return 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int streams_open(struct streams *s, const struct streams_wish *w)
{
	int fd1 = w->out ? w->out[0] : 1, fd2 = w->out ? w->out[1] : 2;
	struct stat out, err, report;
	enum kind k1, k2;
	bool both;
	int i, r;

	for (i = 0; i < 3; i++) {
		pump_init(&s->pump[i]);
		s->child[i] = -1;
		s->shared[i] = false;
	}
	s->master = -1;
	k1 = look(fd1, &out);
	k2 = look(fd2, &err);
	both = k1 == k2 && k1 != KIND_NOTHING && same(&out, &err);
	if (w->report && fstat(w->report, &report) == 0) {
		s->shared[1] = k1 != KIND_NOTHING && same(&out, &report);
		s->shared[2] = k2 != KIND_NOTHING && same(&err, &report);
	}
	if (!w->pty) {
		r = open_in(s, w->no_input);
		if (r == 0)
			r = open_out(s, 1, fd1, k1);
		if (r)
			return r;
	}
	/* A single pipe keeps the order of what is written to both. */
	if (both) {
		s->child[2] = s->child[1];
		return 0;
	}
	return open_out(s, 2, fd2, k2);
}

bool streams_mid_line(const struct streams *s)
{
	for (int i = 1; i < 3; i++)
		if (s->shared[i] && s->pump[i].last && s->pump[i].last != '\n')
			return true;
	return false;
}

void streams_forked(struct streams *s)
{
	int i;

	if (s->child[2] == s->child[1])
		s->child[2] = -1;
	if (s->pump[0].file >= 0 && s->pump[0].probe < 0)
		s->pump[0].probe = TAKE_FD(s->child[0]);
	for (i = 0; i < 3; i++) {
		if (s->child[i] > 2)
			close(s->child[i]);
		s->child[i] = -1;
	}
}

void streams_attach(struct streams *s, int master, struct modes *modes)
{
	struct pump *in = &s->pump[0], *out = &s->pump[1];

	no_wait(master);
	s->master = master;
	from_tty(in, 0);
	in->out = master;
	in->out_ready = true;
	in->paused = true;
	to_tty(out, 1);
	out->in = master;
	out->in_ready = true;
	out->modes = modes;
}

void streams_detach(struct streams *s)
{
	pump_shut(&s->pump[0]);
	pump_shut(&s->pump[1]);
	if (s->master >= 0)
		close(s->master);
	s->master = -1;
}

void streams_close(struct streams *s)
{
	streams_forked(s);
	streams_detach(s);
	pump_shut(&s->pump[2]);
}
