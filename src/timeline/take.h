/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_TAKE_H
#define STET_TIMELINE_TAKE_H

#include "timeline/parts.h"

/* Private to the room. */

/*
 * Finds the layer of a path inside, and the path within the layer; false: none, or the top of
 * a layer.
 */
bool timeline_layer(const struct timeline *c, const char *path, uint32_t *layer,
		    const char **rel);

/*
 * Reads the last checkpoint, and the present state of the layers, whose contents are kept in
 * objects. Of a running sandbox nearly everything is copied before it is stopped; if nothing
 * had changed when the look began, it is not stopped at all. @stay: it is stopped in any case,
 * and still is when this returns.
 */
int timeline_look(struct timeline *c, bool stay, struct ck_state *last,
		  struct ck_state *now, struct err *e);

#endif
