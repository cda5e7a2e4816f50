/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "gate/caller_side.h"
#include "gate/wire.h"
#include "sys/packet.h"

const char *exec_outcome_name(enum exec_outcome o)
{
	static const char *const names[] = { [EXEC_RAN] = "ran",
					     [EXEC_UNVERIFIED] = "unverified",
					     [EXEC_FAILED] = "failed",
					     [EXEC_DENIED] = "denied",
					     [EXEC_KILLED] = "killed" };

	return names[o];
}

static bool ask(struct desk *d, const struct wire_exec *x)
{
	const struct gate_calls *c = d->calls;
	bool yes;

	if (!c->ask)
		return false;
	if (d->hush)
		d->hush(d->hush_arg, true);
	yes = c->ask(c->ctx, &x->facts, &x->verdict, &d->wait);
	if (d->hush)
		d->hush(d->hush_arg, false);
	return yes;
}

static bool decide(struct desk *d, const struct wire_exec *x)
{
	const struct gate_calls *c = d->calls;

	if (x->head.kind == WIRE_ASK)
		return ask(d, x);
	return !c->before_call || c->before_call(c->ctx, &x->facts, &x->verdict) == 0;
}

static void observe(struct desk *d, const struct wire_exec *x)
{
	const struct exec_event ev = { .facts = &x->facts,
				       .argc = x->head.argc,
				       .verdict = &x->verdict,
				       .outcome = (enum exec_outcome)x->head.outcome,
				       .pid = x->head.pid,
				       .ppid = x->head.ppid };

	if (d->calls->observe)
		d->calls->observe(d->calls->ctx, &ev);
	if (x->verdict.kind != VERDICT_KILL)
		return;
	d->end.killed = true;
	snprintf(d->end.rule, sizeof(d->end.rule), "%s",
		 x->verdict.rule ? x->verdict.rule : "");
	snprintf(d->end.why, sizeof(d->end.why), "%s",
		 x->verdict.why ? x->verdict.why : "");
}

static void gather(const struct desk *d, bool begin)
{
	if (d->calls->gather)
		d->calls->gather(d->calls->ctx, begin);
}

static int serve(struct desk *d, const char *message, size_t len)
{
	AUTO_FREE const char **argv = NULL;
	struct wire_answer a = { 0 };
	struct wire_exec x;
	int r;

	r = wire_unpack(message, len, &x);
	argv = x.argv;
	if (r < 0)
		return r;
	/*
	 * While a question waits or a checkpoint is taken, other processes may write to the
	 * audit.
	 */
	gather(d, x.head.kind == WIRE_EXIT || x.head.kind == WIRE_TELL);
	if (x.head.kind == WIRE_EXIT) {
		if (d->calls->ended)
			d->calls->ended(d->calls->ctx, x.head.pid, (int)x.head.seq);
		return 0;
	}
	if (x.head.kind == WIRE_TELL) {
		observe(d, &x);
		return 0;
	}
	a.seq = x.head.seq;
	a.yes = decide(d, &x);
	/* If PID 1 is gone, no process waits for the answer. */
	send(d->sock, &a, sizeof(a), MSG_NOSIGNAL);
	return 0;
}

static int serve_packet(struct desk *d, size_t left)
{
	const char *data = d->data, *message;
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = wire_next(&data, &left, &message)) != 0)
		r = n < 0 ? (int)n : serve(d, message, (size_t)n);
	return r;
}

static int serve_all(struct desk *d)
{
	ssize_t n;
	int r = 0;

	while (r == 0) {
		n = packet_recv(d->sock, d->data, WIRE_MAX, MSG_DONTWAIT);
		if (n <= 0)
			return n == 0 ? -ECONNRESET : n == -EAGAIN ? 0 : (int)n;
		r = serve_packet(d, (size_t)n);
	}
	return r;
}

int desk_serve(struct desk *d)
{
	int r;

	if (!d->data)
		d->data = xmalloc(WIRE_MAX);
	r = serve_all(d);
	gather(d, false);
	return r;
}

void desk_free(struct desk *d)
{
	free(d->data);
	d->data = NULL;
}
