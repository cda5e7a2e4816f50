/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_BASE_H
#define STET_HOST_BASE_H

#include "base/buf.h"
#include "plan/apply.h"
#include "txn/txn.h"

/*
 * Noting what the host has at a path (base.c): who it is, and what it holds, if it bears no change
 * since the transaction began; else nothing. @host: what lies there now. 1 if it was noted, 0,
 * or -1.
 */
struct base_notes {
	struct apply *a;
	/* The objects are those that a commit has put there; only identities are asked for. */
	bool ours;
	/* Also who is there of whom nothing else is known (PLAN_LATE): so that what is not
	 * named was not there. */
	bool whole;
	struct plan_writer *w;
	struct known *known; /* so far */
	int64_t begin;
	uint64_t kept; /* bytes of text */
	uint64_t read;
	struct buf text;
};
int base_note(struct base_notes *b, uint32_t layer, const char *rel,
	      const struct ident *host, struct err *e);
void base_notes_free(struct base_notes *b); /* not the writer */

/*
 * File names of the notes made while the command ran, at its end, and after a commit (left-
 * OP).
 */
#define SEEN "seen"
#define BASE "base"
#define LEFT_NEW "left.new"

/*
 * Notes what the host has at the changed paths. With @max, no more than that many: 1 if
 * there are more, and nothing is kept. @since: when the command was said to have ended, if that was
 * before; what has gone since then is not what it seems.
 */
struct base_wish {
	size_t max;
	int64_t since;
};
int txn_note_base(struct txn *t, const struct base_wish *w, struct err *e);

#endif
