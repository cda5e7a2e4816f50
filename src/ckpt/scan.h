/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_SCAN_H
#define STET_CKPT_SCAN_H

#include "ckpt/ckpt.h"
#include "ckpt/walk.h"

int ck_scan(struct ck_scan *s, struct ck_state *out, struct err *e);

int ck_pack(int dir, const char *name, struct buf *out);

/*
 * Handles one name, whose path is w->rel; paths come in order. 1: a directory to be entered;
 * 0: done, or gone meanwhile; -1: failed.
 */
int walk_visit(struct walk *w, int dir, const char *name);

/* Handles everything in the directory that was visited last. */
int walk_dir(struct walk *w, int parent, const char *dirname, unsigned depth);

/* Ends the pack of a layer: before the next layer, and at the end. */
int walk_end_pack(struct walk *w);
void walk_free(struct walk *w);

#endif
