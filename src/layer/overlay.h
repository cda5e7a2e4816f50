/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_OVERLAY_H
#define STET_LAYER_OVERLAY_H

#include <stdbool.h>
#include <sys/stat.h>

/*
 * What overlayfs, mounted with `userxattr`, writes into an upper directory. A deletion is a
 * whiteout: a character device with the number 0. Marks are extended attributes below
 * OVERLAY_MARK; an attribute of that name that a process inside sets is kept below OVERLAY_ESCAPED
 * in the upper.
 */
#define OVERLAY_MARK "user.overlay."
#define OVERLAY_ESCAPED "user.overlay.overlay."
#define OVERLAY_OPAQUE OVERLAY_MARK "opaque"
#define OVERLAY_ORIGIN OVERLAY_MARK "origin"

static inline bool overlay_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* Makes a whiteout for @name in @dir; an object of that name stays. 0 or -errno. */
int overlay_whiteout(int dir, const char *name);

/*
 * Is the attribute @name of an upper a mark of overlayfs (and not one that a process inside
 * has set)?
 */
bool overlay_is_mark(const char *name);

/*
 * Is the attribute @name of an upper one that a process inside has set under the name of a
 * mark? The part behind OVERLAY_ESCAPED is its name.
 */
bool overlay_is_escaped(const char *name);

#endif
