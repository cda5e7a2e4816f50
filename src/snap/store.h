/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_STORE_H
#define STET_SNAP_STORE_H

#include "base/err.h"
#include "snap/view.h"
#include "sys/mountinfo.h"

/*
 * A store is a directory that holds transactions' data. It lies on the mount of the tree it
 * serves, so that a commit is rename(2) and nothing is copied: `<state>/tx` where the
 * state directory is on that mount, else in `.stet-<uid>` in the highest directory
 * of that mount in which the user can make one (0700, his own). Both are hidden from the
 * inside.
 */

/*
 * Finds or makes the store for @path. Free *out. It is the state directory's if the mount cannot
 * hold layers, because of its type or since it has no user attributes. ERR_UNSUPPORTED if
 * that one cannot either.
 */
int store_for(const struct mountinfo *mi, const char *state_dir, const char *path,
	      char **out, struct err *e);

/*
 * The stores that were ever made elsewhere than in the state directory, each ended by NUL: a file
 * in there. 0, or -errno: -ENOENT if there are none.
 */
#define STORES "stores"
struct buf;
int store_known(const char *state_dir, struct buf *list);

/* Can a directory on filesystem type @fstype be an overlay's upper? Its lower? */
bool store_fs_upper(const char *fstype);
bool store_fs_lower(const char *fstype);

/*
 * Makes the directories of one layer in @l->dir (which must exist), or takes those that a
 * transaction before left clean: `up`, with the rights that the user really has on the
 * host's directory, and an empty `wk`. A scratch layer is the directory itself.
 */
int layer_make(const struct view_layer *l, struct err *e);

/*
 * Is what it is a layer of not mounted any more? Where it lies on the same filesystem, it would be
 * gone with that, and this is not asked; elsewhere it was noted what it is of when it was made.
 */
bool layer_unmounted(const char *dir, const char *host);

/* A layer that was in use: its `up` as it is, and a fresh `wk`, since the kernel refuses to
 * mount twice with a volatile one. */
int layer_resume(const struct view_layer *l, struct err *e);

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
