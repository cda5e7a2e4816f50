/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_WALK_H
#define STET_DIFF_WALK_H

#include "diff/change.h"

/*
 * change_walk() with a filter: only paths equal to or below one of @paths (absolute, clean,
 * NULL-ended; NULL: all) are reported, and only directories on the way to them are read.
 */
int change_walk_paths(const struct change_layer *layers, size_t n,
		      const char *const *paths, change_fn *fn, void *arg, struct err *e);

/* "cannot read PATH: strerror", the path quoted and, if need be, cut at its beginning. */
int walk_error(struct err *e, int err, const char *path);

/*
 * Calls @fn once per difference, directory by directory, names in byte order, a directory
 * before its contents for additions and after them for deletions. Layers in the order
 * given. Not reported: a whiteout over nothing; an upper copy equal to the host's object;
 * a directory whose only difference is its times. An object whose only difference is
 * its mtime is reported with what == CHANGE_TIMES (front ends leave it out).
 *
 * Memory is bounded by the widest directory and the depth, not by the number of changes;
 * trees may be of any depth. Fails with ERR_SYSTEM if the upper or the host tree cannot
 * be read (a directory whose mode keeps us out and that is not ours: e->sys == EACCES; the
 * user's own ones are read whatever their mode); a host object that vanishes while we look
 * counts as absent. Exceptions: a file that cannot be read counts as changed in its content,
 * and no mount on the host is entered in search of deleted objects, since the layer ends
 * there.
 */
int change_walk(const struct change_layer *layers, size_t n, change_fn *fn, void *arg,
		struct err *e);

#endif
