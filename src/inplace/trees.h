/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_INPLACE_TREES_H
#define STET_INPLACE_TREES_H

#include "ckpt/ckpt.h"
#include "journal/journal.h"

/* Private to the room. */

/* Two whole trees as states of one layer. What @edges says is no part of either. */
struct trees {
	const struct txn_record *rec;
	struct ck_layer layer; /* past: the snapshot; live: the tree */
	struct ck_layers layers;
	struct ck_state before, now, edges;
	struct ck_state covered; /* entries of the snapshot that a mount covers now */
};
/* @now: a snapshot that is compared instead of the tree; or -1. Close it in any case. */
int trees_open(const struct txn_record *r, int now, struct trees *t, struct err *e);
void trees_close(struct trees *t);
/*
 * Scans another tree and leaves out the same edges; entries below mounts go to @covered, or
 * NULL.
 */
int trees_scan(const struct trees *t, int fd, struct ck_state *out,
	       struct ck_state *covered, struct err *e);
/* A snapshot: fd, or -1. */
int trees_past(const struct txn_record *r, const char *name);

#endif
