/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_COPY_H
#define STET_LAYER_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Copies a staged object, with everything beneath it, to another filesystem: content (holes
 * stay holes), type, owner as far as that is allowed, mode, times, attributes. Marks of
 * overlayfs and whiteouts are left out. @to must not exist. *objects is increased by the
 * number of copied objects. 0 or -errno; after a failure a part of the copy may exist.
 */
int copy_object(int fromdir, const char *from, int todir, const char *to,
		uint64_t *objects);

/*
 * Copies content into an empty file; holes stay holes. @share: blocks are shared where the
 * filesystem can do that.
 */
int copy_data(int in, int out, off_t size, bool share);

/* Copies extended attributes; marks of overlayfs are left out. */
int copy_attrs(int fromdir, const char *from, int todir, const char *to);

#endif
