/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_WALK_H
#define STET_DIFF_WALK_H

#include "diff/change.h"

/*
 * change_walk() with a filter: only paths equal to or below one of @paths (absolute, clean,
 * NULL-ended; NULL: all) are reported, and only directories on the way to them are read.
 * For this room only.
 */
int walk_paths(const struct change_layer *layers, size_t n, const char *const *paths,
	       change_fn *fn, void *arg, struct err *e);

/* "cannot read PATH: strerror", the path quoted and, if need be, cut at its beginning. */
int walk_error(struct err *e, int err, const char *path);

/* Is @path equal to @top or below it? Both are absolute and clean. */
bool walk_below(const char *path, const char *top);

#endif
