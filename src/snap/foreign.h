/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_FOREIGN_H
#define STET_SNAP_FOREIGN_H

#include "snap/store.h"

/*
 * The kernel cannot copy up an object whose owner or group is not mapped inside (one-id map): the
 * write fails with EOVERFLOW where the host would let the user write. This function puts copies of
 * such objects above and below @dir (a path within the layer's host tree) into the layer's upper
 * beforehand: directories that the user may write or that hold something of his, and files up to
 * a size. Directories above @dir count because the kernel copies up the whole way to an object.
 * The search is bounded, nearest entries first; it is short if there was no such object a moment
 * ago, which @memory knows (snap/adopt_cache.h): start-up does not grow with the tree.
 */
int layer_adopt_foreign(const struct view_layer *l, const char *dir, const char *memory,
			struct err *e);

/*
 * Gives the path of the first object above or below @dir that would have to be in @upper (of the
 * layer over the host's tree at @top) by the rule above, and is not; to be freed. NULL: none was
 * found among a bounded number of entries.
 */
char *layer_left_foreign(const char *top, const char *upper, const char *dir);

/*
 * When that was done in the layer in @dir: what it has put there has an older ctime. Nothing
 * may run in the layer before the clock of files has passed it. 0: there was nothing.
 */
int64_t layer_adopted_ns(const char *dir);

#endif
