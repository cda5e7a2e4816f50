/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TTY_STREAMS_H
#define STET_TTY_STREAMS_H

#include <stdbool.h>

#include "tty/pump.h"

/* The three standard streams of a run: what the command gets, and what we pump. */
struct streams {
	struct pump pump[3];
	int child[3];	/* -1: the pty's slave; above 2: owned, until streams_forked() */
	int master;	/* of the pty, owned; -1 if there is none (yet) */
	bool shared[3]; /* 1, 2: goes to where streams_wish.report does */
};

struct streams_wish {
	bool pty; /* 0 and 1, and 2 if it is the same terminal, are for streams_attach() */
	/*
	 * The destinations of the command's output instead of 1 and 2; NULL: these. Not
	 * closed.
	 */
	const int *out;
	bool no_input; /* the command finds an empty standard input; ours is left alone */
	/* A descriptor of the caller's that is written to when all has ended: output to the
	 * same file passes through us. 0: there is none. */
	int report;
};

/*
 * Looks at 0, 1 and 2 and makes the pipes needed. Returns 0 or -errno; streams_close() is due in
 * both cases. Descriptors it makes are above 2 even if 0, 1 or 2 are closed.
 */
int streams_open(struct streams *s, const struct streams_wish *w);

/* Closes the command's ends. May be repeated. */
void streams_forked(struct streams *s);

/* Takes over @master: the terminal on 0 and 1 is pumped to and from it. */
void streams_attach(struct streams *s, int master, struct modes *modes);

/* The other way round: the terminal is let go, the slave is hung up. */
void streams_detach(struct streams *s);

/* Where streams_wish.report leads: does what the command wrote last leave a line without end? */
bool streams_mid_line(const struct streams *s);

void streams_close(struct streams *s);

#endif
