/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_PLACE_H
#define STET_CKPT_PLACE_H

#include "ckpt/ckpt.h"
#include "ckpt/parts.h"

/*
 * Makes the uppers what @target says; @now says what they are. Only differences are touched.
 * The layers must not be mounted. An interrupted call may be repeated with a new @now.
 */
int ck_sync(const struct ck_layers *layers, const struct ck_state *now,
	    const struct ck_state *target, struct err *e);

/* Makes the object of an entry at @dir/@name, where nothing exists. */
int ck_place(const struct ck_layer *l, const struct ck_entry *e, int dir,
	     const char *name);

/* Sets the attributes of an entry only. */
int ck_dress(const struct ck_layer *l, const struct ck_entry *e, int dir,
	     const char *name);

/* Copies everything that the host has at @rel, without hidden paths. */
int ck_place_host(const struct ck_layer *l, const char *rel, int dir, const char *name);

/* fs_open_parent() that makes directories accessible; fd or -errno. */
int ck_open_parent(int root, const char *rel, const char **base);

/* Has the entry attributes, apart from those that overlayfs makes itself? */
bool ck_wants_xattrs(const struct ck_layer *l, const struct ck_entry *e);

/*
 * Copies the content of @e into @out, which is empty: from its object, or from the file
 * itself.
 */
int ck_copy_out(const struct ck_layer *l, const struct ck_entry *e, int out);

#endif
