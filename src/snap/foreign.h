/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_FOREIGN_H
#define STET_SNAP_FOREIGN_H

#include "snap/store.h"

/*
 * The kernel cannot copy up an object whose owner or group is not mapped inside (one-id
 * map): EOVERFLOW where the host would let the user write. Puts copies of
 * such objects below @dir (a path within the layer's host tree) into the layer's upper
 * beforehand: directories always, files up to a size. Looks at a bounded number of entries,
 * nearest first, and at few if there was no such object a moment ago, which @memory knows
 * (snap/adopt_cache.h): start-up does not grow with the tree.
 */
int layer_adopt_foreign(const struct view_layer *l, const char *dir, const char *memory,
			struct err *e);

/*
 * When that was done in the layer in @dir: what it has put there has an older ctime. Nothing
 * may run in the layer before the clock of files has passed it. 0: there was nothing.
 */
int64_t layer_adopted_ns(const char *dir);

#endif
