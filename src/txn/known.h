/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_KNOWN_H
#define STET_TXN_KNOWN_H

#include "base/err.h"
#include "change/apply.h"
#include "change/plan.h"
#include "txn/txn.h"

/*
 * Which versions of host objects this transaction knows: what the host had when the command
 * ended (the base), and what our own commits and undos of it have left there. An
 * object that is none of these, and that changed after the transaction began, was changed
 * by somebody else.
 */
struct known;

/* For @t, which (like @h) must outlive it. They are read at the first question. */
int known_open(struct home *h, const struct txn *t, struct known **out, struct err *e);
void known_close(struct known *k);

enum known_verdict {
	KNOWN_NOTHING, /* never seen: judge by time */
	KNOWN_SAME,    /* exactly this version */
	KNOWN_OTHER,   /* seen, but it was another */
};

/* Has an operation of this transaction set the attributes of this directory before? */
bool known_touched(struct known *k, uint32_t layer, const char *rel);

/*
 * @host: what lies there now. If only times differ, the content is compared with the digest
 * of what was seen: touching a file is no change.
 */
enum known_verdict known_look(struct known *k, struct apply *a, uint32_t layer,
			      const char *rel, const struct ident *host);

/* The version known, whatever lies there now; false if there is none. */
bool known_ident(struct known *k, uint32_t layer, const char *rel, struct ident *out);

/* The base's content of a small text file, for merging; false if it was not kept. */
bool known_content(struct known *k, uint32_t layer, const char *rel, struct buf *out);

/*
 * @to begins with what @from is: what @from knows of the host, the other knows, too. Afterwards
 * they go their own ways. What cannot be kept is not known: a commit is stricter then.
 */
void known_inherit(struct home *h, const struct txn_record *from,
		   const struct txn_record *to);

#endif
