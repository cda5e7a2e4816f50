/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_RESCAN_H
#define STET_CKPT_RESCAN_H

#include "ckpt/ckpt.h"

void ck_paths_add(struct ck_paths *p, uint32_t layer, const char *rel, enum ck_again how);
void ck_paths_free(struct ck_paths *p);

/*
 * Brings @state, which ck_scan() has made, up to date by looking at @paths only, which are
 * sorted; s->prev is not used. New directories are watched; entries that are CK_EARLY are read
 * again whatever their times say. 1: not possible (files with several names are among the
 * paths, or a path is unknown), a ck_scan() is needed, and @state is unchanged.
 */
int ck_rescan(struct ck_scan *s, struct ck_paths *paths, struct ck_state *state,
	      struct err *e);

#endif
