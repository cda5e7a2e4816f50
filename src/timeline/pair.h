/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_PAIR_H
#define STET_TIMELINE_PAIR_H

#include "timeline/timeline.h"

int timeline_pair(struct timeline *c, int64_t a, int64_t b, struct timeline_pair *p,
		  struct err *e);

void timeline_pair_free(struct timeline_pair *p); /* one of zeros is fine */

/*
 * Makes the directories for the trees of one layer below @place; p->dirs and p->names have
 * room.
 */
int timeline_pair_dir(int place, struct timeline_pair *p, int *before, int *after,
		      struct err *e);

/* Fills the empty layers of @to, found by their hosts, with the state at @seq. */
int timeline_fill(struct timeline *c, int64_t seq, const struct view *to, struct err *e);

#endif
