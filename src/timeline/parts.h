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

/* The layer that a path of the inside is in, and its name there; false: none, or its top. */
bool timeline_layer(const struct timeline *c, const char *path, uint32_t *layer,
		    const char **rel);

/* The state at @seq; free it. */
int timeline_state(struct timeline *c, int64_t seq, struct ck_state *s, struct err *e);

int64_t timeline_last(const struct timeline *c); /* 0: there is none */

bool timeline_differ(const struct ck_state *a, const struct ck_state *b);

/*
 * The last checkpoint, and what the layers are now, kept in objects. Of a sandbox that runs
 * nearly all is copied before it is stopped. If nothing had changed when we began to look, it
 * need not be stopped at all; @stay: it must be, and is so when this returns.
 */
int timeline_look(struct timeline *c, bool stay, struct ck_state *last,
		  struct ck_state *now, struct err *e);
/* Lets all go on that were stopped. */
int timeline_thaw(struct timeline *c, struct err *e);

/* Lets old ones go if there are too many. Pointers into c->all do not outlive it. */
void timeline_thin(struct timeline *c);

/* Makes @paths what @target has there, through an overlay mounted for it, seen by nobody. */
int timeline_mount_go(struct timeline *c, const struct ck_state *now,
		      const struct ck_state *target, const char *const *paths,
		      struct err *e);

#endif
