/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_PARTS_H
#define STET_TIMELINE_PARTS_H

#include "ctl/live.h"
#include "timeline/timeline.h"

/* Private to the room. */
struct timeline {
	struct home *h;
	struct txn *t;
	int dir; /* holds the files of the states; -1: there are none yet */
	struct change_layer *changes;
	struct ck_layers layers; /* overlay layers, in the order of txn_layers() */
	struct ckpt_records all;
	struct live *live; /* the running sandbox; NULL: none runs */
	bool frozen;
	int mark; /* MARK of a change in a running sandbox; -1: none */
};

/* The state at @seq; free it. */
int timeline_state(struct timeline *c, int64_t seq, struct ck_state *s, struct err *e);

int64_t timeline_last(const struct timeline *c); /* 0: there is none */

bool timeline_differ(const struct ck_state *a, const struct ck_state *b);

/* Lets all go on that were stopped. */
int timeline_thaw(struct timeline *c, struct err *e);

#endif
