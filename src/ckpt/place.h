/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_PLACE_H
#define STET_CKPT_PLACE_H

#include "ckpt/ckpt.h"
#include "ckpt/parts.h"

/*
 * Makes the uppers what @target says, where @now says what they are. Only what differs is
 * touched. The layers must not be mounted. May be repeated after it was interrupted, with a
 * new @now.
 */
int ck_sync(const struct ck_layers *layers, const struct ck_state *now,
	    const struct ck_state *target, struct err *e);

/* Puts an entry at @dir/@name, where nothing is. */
int ck_place(const struct ck_layer *l, const struct ck_entry *e, int dir,
	     const char *name);

/* Attributes alone. */
int ck_dress(const struct ck_layer *l, const struct ck_entry *e, int dir,
	     const char *name);

/* All that the host has at @rel, hidden paths left out. */
int ck_place_host(const struct ck_layer *l, const char *rel, int dir, const char *name);

/* fs_open_parent() that makes directories accessible; fd or -errno. */
int ck_open_parent(int root, const char *rel, const char **base);

/* Are there attributes that it should have, besides those that are overlayfs' business? */
bool ck_wants_xattrs(const struct ck_layer *l, const struct ck_entry *e);

/* Content of @e into @out, which is empty: from its object, or from where it lies. */
int ck_copy_out(const struct ck_layer *l, const struct ck_entry *e, int out);

#endif
