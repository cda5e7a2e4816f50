/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/relay.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "gate/caller_side.h"
#include "limits/limits.h"
#include "runner/runner.h"
#include "tty/modes.h"
#include "tty/restorer.h"
#include "tty/streams.h"
#include "tty/tty.h"

#define GRACE_MS 2000
#define END_MS 1000 /* for PID 1, to end all by itself */
#define WATCH_MS 20 /* most commands have ended by then: nothing to watch */
#define LOOK_MS 200 /* how often a background job looks whether it still is one */

enum {
	POLL_CTL,
	POLL_PID,
	POLL_SIGNAL,
	POLL_GATE,
	POLL_WATCH,
	POLL_SIDE,
	POLL_DOOR,
	POLL_PUMPS = POLL_DOOR + INSIDE_SOCKET_POLLS,
	POLL_COUNT = POLL_PUMPS + 6
};

struct relay {
	bool go; /* see relay_go() */
	int64_t id;
	struct desk desk;
	struct inside_socket *door; /* NULL: none */
	struct run_side *side;	    /* NULL: none */
	struct streams streams;
	struct tty own_tty, *tty;
	struct modes own_modes, *modes;
	struct restorer keeper; /* if there is one, tty and modes are in its page */
	bool pty;
	struct relay_wish wish;

	bool signals_taken, tstp_taken;
	sigset_t old_mask;
	struct sigaction old_pipe;
};

/* Times are CLOCK_MONOTONIC in ms; 0: not set. */
struct loop {
	struct relay *r;
	struct relay_end *end;
	int ctl, pidfd, sigfd; /* ctl: -1 once it is closed */
	int64_t timeout_ms, term_at, kill_at, look_at, watch_at, last_signal;
	bool gone, killed, stopping, reset_done;
};

int relay_new(const struct relay_wish *w, struct relay **out, struct err *e)
{
	struct relay *r = xcalloc(1, sizeof(*r));
	struct streams_wish sw = { .out = w->out,
				   .no_input = w->no_input,
				   .report = w->report };
	bool tty = isatty(0) == 1;
	int rc;

	r->wish = *w;
	r->tty = &r->own_tty;
	r->modes = &r->own_modes;
	sw.pty = r->pty = w->want_tty && tty && isatty(1) == 1;
	r->tty->fd = -1;
	r->desk.sock = -1;
	if (tty && !w->no_input)
		tty_look(r->tty, 0);
	rc = streams_open(&r->streams, &sw);
	if (rc) {
		relay_free(r);
		return err_sys(e, rc, "cannot make pipes for the standard streams");
	}
	*out = r;
	return 0;
}

bool relay_wants_pty(const struct relay *r)
{
	return r->pty;
}

void relay_pty_init(const struct relay *r, int master)
{
	tty_copy(r->tty, master);
}

void relay_child_fds(const struct relay *r, int fds[3])
{
	memcpy(fds, r->streams.child, sizeof(r->streams.child));
}

void relay_forked(struct relay *r)
{
	streams_forked(&r->streams);
}

/*
 * Blocks the signals that we handle. A signal that was ignored from the start (nohup) stays
 * ignored: blocking it would make signalfd report it. Returns the signalfd or -errno.
 */
static int take_signals(struct relay *r)
{
	static const int maybe[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
	static const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction old;
	sigset_t set;
	size_t i;
	int fd;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(maybe); i++)
		if (sigaction(maybe[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaddset(&set, maybe[i]);
	r->tstp_taken = sigismember(&set, SIGTSTP) == 1;
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGWINCH);
	/*
	 * Blocked, these signals do not stop us: writing from the background is allowed,
	 * reading fails with EIO.
	 */
	sigaddset(&set, SIGTTIN);
	sigaddset(&set, SIGTTOU);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	sigaction(SIGPIPE, &ignore, &r->old_pipe);
	r->signals_taken = true;
	return fd;
}

/*
 * If the restorer cannot be started, the terminal stays as it is when we are killed: no reason
 * not to run.
 */
static void take_keeper(struct relay *r)
{
	if (!r->pty || restorer_start(&r->keeper, r->tty, r->modes) < 0)
		return;
	r->tty = &r->keeper.page->tty;
	r->modes = &r->keeper.page->modes;
}

static void part_with_keeper(struct relay *r)
{
	if (r->tty == &r->own_tty)
		return;
	r->own_tty = *r->tty;
	r->own_modes = *r->modes;
	r->tty = &r->own_tty;
	r->modes = &r->own_modes;
	restorer_stop(&r->keeper);
}

/* The terminal comes first: with SIGTTOU unblocked it could stop us. */
static void give_back(struct relay *r)
{
	tty_restore(r->tty);
	part_with_keeper(r);
	if (!r->signals_taken)
		return;
	r->signals_taken = false;
	sigaction(SIGPIPE, &r->old_pipe, NULL);
	sigprocmask(SIG_SETMASK, &r->old_mask, NULL);
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	give_back(r);
	streams_close(&r->streams);
	desk_free(&r->desk);
	free(r);
}

/*
 * PID 1 kills all the others first, and looks at what is left (end_others() there). If it does
 * not come to that, PID 1 is killed, and all processes with it.
 */
static void end_init(struct loop *l)
{
	bool again = l->killed;

	l->killed = true;
	l->term_at = l->kill_at = 0;
	if (!again && l->end->started && l->ctl >= 0 &&
	    ctl_send_value(l->ctl, CTL_END, 0, MSG_DONTWAIT) == 0)
		l->kill_at = clock_ms(CLOCK_MONOTONIC) + END_MS;
	else
		pidfd_send_signal(l->pidfd, SIGKILL, NULL, 0);
}

static void fail(struct loop *l, int err, const char *what)
{
	if (!l->end->failed)
		err_sys(&l->end->err, err, "%s", what);
	l->end->failed = true;
	end_init(l);
}

/* A message that cannot be sent is lost: PID 1 is gone, or its queue is full of our signals. */
static void tell(struct loop *l, enum ctl_type type, int value)
{
	if (l->ctl >= 0)
		ctl_send_value(l->ctl, type, value, MSG_DONTWAIT);
}

/*
 * Our terminal is gone: the command learns that as it would have without us, by SIGHUP and by
 * a dead terminal.
 */
static void hang_up(struct loop *l)
{
	tell(l, CTL_SIGNAL, SIGHUP);
	streams_detach(&l->r->streams);
}

/* Takes the terminal if it is ours now, else leaves it alone for a while. */
static void take_terminal(struct loop *l)
{
	struct relay *r = l->r;
	struct streams *s = &r->streams;

	l->look_at = 0;
	if (r->tty->fd < 0 || !pump_active(&s->pump[0]))
		return;
	if (!tty_foreground(r->tty)) {
		s->pump[0].paused = true;
		l->look_at = clock_ms(CLOCK_MONOTONIC) + LOOK_MS;
		return;
	}
	if (s->master >= 0) {
		tty_raw(r->tty);
		tty_resize(r->tty, s->master);
	}
	s->pump[0].paused = r->pty ? s->master < 0 : !l->end->started;
}

static void on_pty(struct loop *l, int *fd)
{
	struct relay *r = l->r;

	if (*fd < 0 || !r->pty || r->streams.master >= 0) {
		fail(l, EPROTO, "the sandbox sent a terminal that was not asked for");
		return;
	}
	streams_attach(&r->streams, TAKE_FD(*fd), r->modes);
	take_terminal(l);
}

static void on_started(struct loop *l, const struct ctl_msg *m, int *root)
{
	l->end->started = true;
	if (l->r->door)
		inside_socket_start(l->r->door);
	if (l->r->wish.watch) {
		int r = watch_sandbox(l->r->wish.watch, *root);

		if (r < 0)
			fail(l, r, "cannot watch over the limits");
		l->watch_at = clock_ms(CLOCK_MONOTONIC) +
			      (watch_urgent(l->r->wish.watch) ? 0 : WATCH_MS);
	}
	l->end->setup_us = m->value;
	if (l->timeout_ms > 0)
		l->term_at = clock_ms(CLOCK_MONOTONIC) + l->timeout_ms;
	l->r->streams.pump[0].paused = false;
	take_terminal(l);
}

static void on_message(struct loop *l, const struct ctl_msg *m, int *fd)
{
	struct relay_end *end = l->end;

	switch (m->type) {
	case CTL_ERROR:
		end->failed = true;
		end->err = m->err;
		break;
	case CTL_PTY:
		on_pty(l, fd);
		break;
	case CTL_STARTED:
		on_started(l, m, fd);
		break;
	case CTL_EXEC_FAILED:
		end->exec_errno = m->value;
		end->no_cwd = m->extra;
		l->term_at = 0;
		break;
	case CTL_STOPPED:
		l->stopping = true;
		break;
	case CTL_EXITED:
		end->exited = true;
		end->wait_status = m->value;
		end->renames = m->extra;
		if (end->mount < 0)
			end->mount = TAKE_FD(*fd);
		l->term_at = 0;
		break;
	default:
		fail(l, EPROTO, "the sandbox sent a message that is not its to send");
	}
}

static void on_ctl(struct loop *l)
{
	struct ctl_msg m;
	int r;

	while (l->ctl >= 0) {
		AUTO_CLOSE int fd = -1;

		r = ctl_recv(l->ctl, &m, &fd, MSG_DONTWAIT);
		if (r == -EAGAIN)
			return;
		if (r <= 0)
			l->ctl = -1;
		if (r < 0)
			fail(l, r, "cannot understand the sandbox");
		if (r > 0)
			on_message(l, &m, &fd);
	}
}

/*
 * For a question to the user: earlier output has to be seen first, and the terminal is not the
 * command's meanwhile.
 */
static void hush(void *arg, bool on)
{
	struct loop *l = arg;

	if (!on) {
		take_terminal(l);
		return;
	}
	for (int i = 1; i < 3; i++)
		pump_drain(&l->r->streams.pump[i]);
	tty_restore(l->r->tty);
}

/* While a question waits: output of the other processes inside goes on. */
static void let_flow(void *arg)
{
	struct loop *l = arg;
	struct pump *pumps = l->r->streams.pump;
	struct pollfd pf[4];

	pump_poll(&pumps[1], pf);
	pump_poll(&pumps[2], pf + 2);
	if (poll(pf, 4, 0) <= 0)
		return;
	pump_run(&pumps[1], pf);
	pump_run(&pumps[2], pf + 2);
}

static void on_gate(struct loop *l)
{
	struct desk *d = &l->r->desk;

	if (d->sock < 0)
		return;
	d->wait = (struct ask_wait){ l->term_at,
				     l->r->streams.master < 0 ? let_flow : NULL, l };
	d->hush = hush;
	d->hush_arg = l;
	if (desk_serve(d) < 0)
		d->sock = -1; /* nobody is there any more, or will be */
	if (d->end.killed && !l->killed)
		end_init(l);
}

static void drop_output(struct loop *l)
{
	streams_detach(&l->r->streams);
	pump_shut(&l->r->streams.pump[2]);
}

static void on_fatal(struct loop *l, int sig)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC);

	if (l->gone) {
		drop_output(l);
		return;
	}
	if (sig == SIGINT || sig == SIGTERM) {
		if (l->last_signal && now - l->last_signal <= GRACE_MS) {
			end_init(l);
			return;
		}
		l->last_signal = now;
	}
	tell(l, CTL_SIGNAL, sig);
}

static void on_signal(struct loop *l)
{
	struct signalfd_siginfo si;

	while (read(l->sigfd, &si, sizeof(si)) == sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGWINCH:
			if (l->r->streams.master >= 0)
				tty_resize(l->r->tty, l->r->streams.master);
			break;
		case SIGCONT:
			take_terminal(l);
			break;
		case SIGTSTP:
			/* If the command stops, CTL_STOPPED comes and we stop, too. */
			tell(l, CTL_SIGNAL, SIGTSTP);
			break;
		case SIGTTIN:
		case SIGTTOU:
			break;
		default:
			on_fatal(l, (int)si.ssi_signo);
		}
	}
}

static void limit_hit(struct loop *l, const struct limit_hit *hit)
{
	if (l->end->hit.what || l->gone)
		return;
	l->end->hit = *hit;
	end_init(l);
}

/* Without the watcher the limits would not hold: then nothing may run. */
static void start_watch(struct loop *l)
{
	int r = watch_start(l->r->wish.watch);

	l->watch_at = 0;
	if (r < 0)
		fail(l, r, "cannot watch over the limits");
}

static void on_watch(struct loop *l)
{
	struct limit_hit hit;
	int r;

	if (watch_read(l->r->wish.watch, &hit, &r))
		limit_hit(l, &hit);
	else if (r < 0 && !l->gone && !l->killed)
		fail(l, r, "who watched over the limits is gone");
}

/* Output that is not read blocks its writer: a flood stops at its source. */
static void check_output(struct loop *l)
{
	const struct streams *s = &l->r->streams;
	struct limit_hit hit = { .what = LIMIT_OUTPUT, .allowed = l->r->wish.output };

	hit.used = s->pump[1].passed + s->pump[2].passed;
	if (hit.allowed && hit.used > hit.allowed)
		limit_hit(l, &hit);
}

static void on_time(struct loop *l)
{
	int64_t now = clock_ms(CLOCK_MONOTONIC);

	if (l->term_at && now >= l->term_at) {
		l->term_at = 0;
		l->kill_at = now + (l->r->wish.grace_ms ? l->r->wish.grace_ms : GRACE_MS);
		l->end->timed_out = true;
		tell(l, CTL_SIGNAL, SIGTERM);
	}
	if (l->kill_at && now >= l->kill_at)
		end_init(l);
	if (l->look_at && now >= l->look_at)
		take_terminal(l);
	if (l->watch_at && now >= l->watch_at)
		start_watch(l);
}

static void on_pumps(struct loop *l, const struct pollfd *pf)
{
	struct streams *s = &l->r->streams;
	struct pump *in = &s->pump[0];
	bool was_active = pump_active(in), was_paused = in->paused;
	int i;

	for (i = 0; i < 3; i++)
		pump_run(&s->pump[i], pf + i * 2);
	if (in->paused && !was_paused) {
		take_terminal(l);
		if (!in->paused) { /* in the foreground, and yet unreadable */
			in->ended = true;
			pump_shut(in);
		}
	}
	/* A closed slave (the inside is about to end) is no hangup of our terminal. */
	if (was_active && !pump_active(in)) {
		if (s->master >= 0 && in->ended)
			hang_up(l);
		else if (s->master < 0)
			pump_close_out(in);
	}
	if (s->master >= 0 && s->pump[1].out < 0)
		hang_up(l);
}

/*
 * The command has stopped, so we stop, for the shell to notice. With a pty the Ctrl-Z did not
 * reach our own process group, which is the job of the shell: all of it must stop. The kernel
 * ignores SIGTSTP where no process could continue us (orphaned group), and then the command
 * goes on at once.
 */
static void suspend(struct loop *l)
{
	struct relay *r = l->r;
	sigset_t tstp;
	int i;

	for (i = 1; i < 3; i++) {
		pump_drain(&r->streams.pump[i]);
		if (r->streams.pump[i].len > 0)
			return; /* what it said before it stopped has to be seen before */
	}
	l->stopping = false;
	tty_restore(r->tty);
	kill(r->pty ? 0 : getpid(), SIGTSTP);
	if (r->tstp_taken) {
		sigemptyset(&tstp);
		sigaddset(&tstp, SIGTSTP);
		sigprocmask(SIG_UNBLOCK, &tstp, NULL);
		sigprocmask(SIG_BLOCK, &tstp, NULL);
	}
	take_terminal(l);
	tell(l, CTL_CONT, 0);
}

/* Every process inside is dead: what is in pipes and pty now is the rest of the output. */
static void on_gone(struct loop *l)
{
	struct streams *s = &l->r->streams;
	struct relay_end *end = l->end;
	int i;

	on_ctl(l);
	on_gate(l);
	l->ctl = l->r->desk.sock = -1;
	l->gone = true;
	l->stopping = false;
	l->term_at = l->kill_at = l->look_at = l->watch_at = 0;
	pump_shut(&s->pump[0]);
	for (i = 1; i < 3; i++) {
		s->pump[i].final = true;
		pump_drain(&s->pump[i]);
	}
	if (end->exited || end->failed || end->exec_errno)
		return;
	if (l->killed) {
		end->exited = true;
		end->wait_status = SIGKILL;
	} else {
		end->failed = true;
		err_set(&end->err, ERR_SYSTEM, "the sandbox ended unexpectedly");
	}
}

static void reset_modes(struct loop *l)
{
	const struct relay_end *end = l->end;
	char text[MODES_RESET_MAX];
	size_t n;

	l->reset_done = true;
	if (end->exited && !WIFSIGNALED(end->wait_status) && !end->timed_out)
		return;
	n = modes_reset(l->r->modes, text);
	if (n > 0)
		pump_load(&l->r->streams.pump[1], text, n);
}

static bool finished(struct loop *l)
{
	const struct streams *s = &l->r->streams;

	if (!l->gone || pump_active(&s->pump[1]) || pump_active(&s->pump[2]))
		return false;
	if (!l->reset_done)
		reset_modes(l);
	return !pump_active(&s->pump[1]);
}

static int wait_ms(const struct loop *l)
{
	const int64_t at[] = { l->term_at, l->kill_at, l->look_at, l->watch_at,
			       l->r->door && !l->gone ? inside_socket_at(l->r->door)
						      : 0 };
	int64_t first = 0, left;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(at); i++)
		if (at[i] && (!first || at[i] < first))
			first = at[i];
	if (!first)
		return -1;
	left = first - clock_ms(CLOCK_MONOTONIC);
	if (left < 0)
		return 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

static int step(struct loop *l)
{
	struct pollfd pf[POLL_COUNT];
	int i;

	pf[POLL_CTL] = (struct pollfd){ .fd = l->ctl, .events = POLLIN };
	pf[POLL_PID] = (struct pollfd){ .fd = l->gone ? -1 : l->pidfd, .events = POLLIN };
	pf[POLL_SIGNAL] = (struct pollfd){ .fd = l->sigfd, .events = POLLIN };
	pf[POLL_GATE] = (struct pollfd){ .fd = l->r->desk.sock, .events = POLLIN };
	pf[POLL_WATCH] = (struct pollfd){ .fd = watch_fd(l->r->wish.watch),
					  .events = POLLIN };
	if (l->r->door && !l->gone)
		inside_socket_poll(l->r->door, pf + POLL_DOOR);
	else
		pf[POLL_DOOR].fd = pf[POLL_DOOR + 1].fd = -1;
	pf[POLL_SIDE] = (struct pollfd){ .fd = l->r->side && !l->gone ? l->r->side->fd
								      : -1,
					 .events = POLLIN };
	for (i = 0; i < 3; i++)
		pump_poll(&l->r->streams.pump[i], pf + POLL_PUMPS + i * 2);
	if (poll(pf, POLL_COUNT, wait_ms(l)) < 0)
		return errno == EINTR ? 0 : -errno;
	/* Pumps come first: their events belong to descriptors that the rest may close. */
	on_pumps(l, pf + POLL_PUMPS);
	check_output(l);
	if (pf[POLL_WATCH].revents)
		on_watch(l);
	if (pf[POLL_CTL].revents)
		on_ctl(l);
	if (pf[POLL_GATE].revents)
		on_gate(l);
	if (l->r->door && !l->gone)
		inside_socket_serve(l->r->door, pf + POLL_DOOR);
	if (pf[POLL_SIDE].revents)
		l->r->side->ready(l->r->side->arg);
	if (pf[POLL_SIGNAL].revents)
		on_signal(l);
	on_time(l);
	if (l->stopping)
		suspend(l);
	if (pf[POLL_PID].revents)
		on_gone(l);
	return 0;
}

void relay_gate(struct relay *r, int sock, const struct gate_calls *calls)
{
	r->desk = (struct desk){ .sock = sock, .calls = calls };
}

void relay_door(struct relay *r, struct inside_socket *d)
{
	r->door = d;
}

void relay_side(struct relay *r, struct run_side *s)
{
	r->side = s;
}

void relay_go(struct relay *r, int64_t id)
{
	r->go = true;
	r->id = id;
}

int relay_loop(struct relay *r, int ctl, int pidfd, int64_t timeout_ms,
	       struct relay_end *end, struct err *e)
{
	struct loop l = {
		.r = r, .end = end, .ctl = ctl, .pidfd = pidfd, .timeout_ms = timeout_ms
	};
	AUTO_CLOSE int sigfd = -1;
	int rc = 0, i;

	memset(end, 0, sizeof(*end));
	end->mount = -1;
	relay_forked(r);
	sigfd = take_signals(r);
	if (sigfd < 0) {
		end_init(&l);
		return err_sys(e, sigfd, "cannot take signals");
	}
	l.sigfd = sigfd;
	take_keeper(r);
	/* If PID 1 is gone already, its last message is waiting for us. */
	if (r->go)
		ctl_send(ctl,
			 &(struct ctl_msg){ .type = CTL_GO, .extra = (uint64_t)r->id },
			 -1, 0);
	while (rc == 0 && !finished(&l))
		rc = step(&l);
	if (rc)
		end_init(&l);
	for (i = 1; i < 3; i++)
		if (r->streams.pump[i].err && !end->lost_errno)
			end->lost_errno = r->streams.pump[i].err;
	end->gate = r->desk.end;
	end->mid_line = streams_mid_line(&r->streams);
	end->output = r->streams.pump[1].passed + r->streams.pump[2].passed;
	give_back(r);
	return rc ? err_sys(e, rc, "cannot wait for the sandbox") : 0;
}
