/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_RESCAN_H
#define STET_CKPT_RESCAN_H

#include "ckpt/ckpt.h"

void ck_paths_add(struct ck_paths *p, uint32_t layer, const char *rel, enum ck_again how);
void ck_paths_free(struct ck_paths *p);

/*
 * Brings @state, which ck_scan() has made, up to date by looking at @paths alone, which are
 * sorted; s->prev is not used. New directories are watched; what was read early is read
 * again, whatever its times say. 1: that cannot be done (files with several names are among
 * them, or one that nobody knows), it takes a ck_scan(); @state is as it was.
 */
int ck_rescan(struct ck_scan *s, struct ck_paths *paths, struct ck_state *state,
	      struct err *e);

#endif
