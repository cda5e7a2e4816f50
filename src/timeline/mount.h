/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_MOUNT_H
#define STET_TIMELINE_MOUNT_H

#include "timeline/parts.h"

/* Private to the room. */

/*
 * Makes @paths what @target says, through an overlay that is mounted in a namespace of its
 * own.
 */
int timeline_mount_go(struct timeline *c, const struct ck_state *now,
		      const struct ck_state *target, const char *const *paths,
		      struct err *e);

#endif
