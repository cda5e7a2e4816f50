/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_DIRCACHE_H
#define STET_PLAN_DIRCACHE_H

#include <stdint.h>

#include "base/buf.h"

/*
 * The way from a root down to the directory that was asked for last. Steps come in the order of a
 * walk: the next one is asked for in the same directory, in one beneath it or in one above, and is
 * opened from where the ways part. To go all the way each time would cost the square of the depth.
 *
 * What lies on the way may be moved away meanwhile. So a way is good for a moment only, and gone
 * anew after that; and what is beneath a directory is let go when that is left.
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
