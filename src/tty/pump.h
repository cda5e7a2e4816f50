/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TTY_PUMP_H
#define STET_TTY_PUMP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tty/modes.h"

#define PUMP_BUF 65536U

/*
 * Copies in one direction through a fixed buffer: it is filled only when empty, so a slow
 * reader slows the writer and nothing grows. pump_init() makes it; the caller that knows the
 * descriptors sets the fields of the first part.
 */
struct pump {
	int in, out;		/* -1: none (any more) */
	bool own_in, own_out;	/* closed by pump_shut() */
	bool in_ready;		/* reading never blocks: O_NONBLOCK */
	bool out_ready;		/* nor does writing: may be tried without poll */
	bool in_sock, out_sock; /* MSG_DONTWAIT instead of O_NONBLOCK */
	bool in_tty;		/* EIO pauses: it may only mean the background */
	bool discard;		/* no out: what comes is dropped */
	/* A file on stdin: at the end seek back over what is still in the pipe. probe is
	 * a reading end of it, owned; both -1 otherwise. */
	int file, probe;
	/* The caller's pipe on stdin (tty/pipe_input.h): `lent` bytes of it are in ours, which is
	 * full; bulk: they are moved instead. null: /dev/null, owned. lent_room: the size of
	 * our pipe. */
	bool pipe_in, bulk, full;
	int null, lent_room;
	uint32_t lent;
	uint32_t max_write;  /* most bytes for one write */
	struct modes *modes; /* NULL, or told of all that passes */

	bool paused;	 /* in is left alone */
	bool ended;	 /* in came to its end, or failed, by itself */
	bool final;	 /* nothing more will come: an empty in has ended */
	int err;	 /* writing failed with this errno; EPIPE is not kept */
	uint64_t passed; /* bytes read so far */
	char last;	 /* byte that was written; 0: none was */
	uint32_t off, len;
	char *buf;
};

void pump_init(struct pump *p);

/* Is there anything left to do for it? */
bool pump_active(const struct pump *p);

/* Fills in the events to wait for. */
void pump_poll(const struct pump *p, struct pollfd pf[2]);

/*
 * Moves what can be moved, @pf being pump_poll()'s after poll(2). Once in has ended and
 * all is written the pump is not active; if out fails it is shut.
 */
void pump_run(struct pump *p, const struct pollfd pf[2]);

/* Moves all that is there now without waiting for input; in must be O_NONBLOCK. */
void pump_drain(struct pump *p);

/* Adds bytes of our own at the end; only when nothing is pending and in has ended. */
void pump_load(struct pump *p, const char *s, size_t len);

/* Closes out if it is owned, so that its reader sees the end. */
void pump_close_out(struct pump *p);

/* Ends it: what is pending is dropped, what is owned is closed. May be repeated. */
void pump_shut(struct pump *p);

#endif
