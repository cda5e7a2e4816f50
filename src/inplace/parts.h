/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_INPLACE_PARTS_H
#define STET_INPLACE_PARTS_H

#include "inplace/inplace.h"
#include "timeline/parts.h"

/* Private to inplace*.c. Snapshots, in the directory that inplace_open() gives: */
#define BEFORE "snap" /* at the beginning */
#define END "end"     /* when the command had ended; none if nobody saw that */
#define AFTER "after" /* when a rollback began */

/* What the name of a store begins with (snap/store.c); the user's number follows. */
#define STORE_NAME ".stet-"

/*
 * The directory of the overlay layer that lies over it: its store is on the same filesystem.
 * fd, or -1.
 */
int inplace_open(const struct txn_record *r, struct err *e);
int inplace_snapshot(const struct txn_record *r, const char *name, struct err *e);

/* Two whole trees as states of one layer. What @edges says is no part of either. */
struct trees {
	struct ck_layer layer; /* past: the snapshot; live: the tree */
	struct ck_layers layers;
	struct ck_state before, now, edges;
};
/* @now: a snapshot that is compared instead of the tree; or -1. Close it in any case. */
int trees_open(const struct txn_record *r, int now, struct trees *t, struct err *e);
void trees_close(struct trees *t);
/* Another tree, without the same edges. */
int trees_scan(const struct trees *t, int fd, struct ck_state *out, struct err *e);
/* A snapshot: fd, or -1. */
int trees_past(const struct txn_record *r, const char *name);

#endif
