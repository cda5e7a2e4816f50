/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_PARTS_H
#define STET_TIMELINE_PARTS_H

#include "ctl/live.h"
#include "timeline/timeline.h"

/* Private to the room. */
struct timeline {
	struct home *h;
	struct txn *t;
	int dir; /* the states' files; -1: there are none yet */
	struct change_layer *changes;
	struct ck_layers
		layers; /* those that are overlays, in the order of txn_layers() */
	struct ckpt_records all;
	struct live *live; /* the sandbox that runs in it; NULL: none does */
	bool frozen;
	int mark; /* of a change that has begun while it runs; -1: none */
};

/* The state at @seq; free it. */
int timeline_state(struct timeline *c, int64_t seq, struct ck_state *s, struct err *e);

int64_t timeline_last(const struct timeline *c); /* 0: there is none */

bool timeline_differ(const struct ck_state *a, const struct ck_state *b);

/* Lets all go on that were stopped. */
int timeline_thaw(struct timeline *c, struct err *e);

#endif
