/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_DIRCACHE_H
#define STET_PLAN_DIRCACHE_H

#include <stdint.h>

#include "base/buf.h"

/*
 * Keeps the directories open from a root down to the directory that was asked for last. Steps
 * come in the order of a walk: the next one lies in the same directory, beneath it or above
 * it, and is opened from the deepest common directory. Opening from the root each time would
 * cost the square of the depth.
 *
 * A directory may be moved away meanwhile. So the open directories are trusted for a moment
 * only, and are opened again after that; directories beneath the present one are closed when
 * it is left.
 */
struct dircache {
	struct buf path;
	struct level {
		size_t len; /* of @path up to here */
		int fd;	    /* -1: let go, of those there are many */
	} * v;
	size_t n, cap;
	int64_t begun_ms, good_ms;
};

/* The directory that @dir (as fs_open_beneath() takes it) lies in, O_PATH; the trail's own. *base:
 * its last component. -errno, and then the trail is empty. */
int dircache_to(struct dircache *t, int root, const char *dir, const char **base);

/* Closes all; it can be used again. */
void dircache_drop(struct dircache *t);
void dircache_free(struct dircache *t);

#endif
