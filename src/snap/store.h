/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_STORE_H
#define STET_SNAP_STORE_H

#include <stdbool.h>
#include <sys/types.h>

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

/* Is @name the name of a store of the user @owner, `.stet-<uid>`? */
#define STORE_NAME ".stet-"
bool store_named(const char *name, uid_t owner);

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

#endif
