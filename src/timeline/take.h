/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_TAKE_H
#define STET_TIMELINE_TAKE_H

#include "timeline/parts.h"

/* Private to the room. */

/* The layer that a path of the inside is in, and its name there; false: none, or its top. */
bool timeline_layer(const struct timeline *c, const char *path, uint32_t *layer,
		    const char **rel);

/*
 * The last checkpoint, and what the layers are now, kept in objects. Of a sandbox that runs
 * nearly all is copied before it is stopped. If nothing had changed when we began to look, it
 * need not be stopped at all; @stay: it must be, and is so when this returns.
 */
int timeline_look(struct timeline *c, bool stay, struct ck_state *last,
		  struct ck_state *now, struct err *e);

#endif
