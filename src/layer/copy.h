/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_COPY_H
#define STET_LAYER_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Copies a staged object, with all beneath it, to another filesystem: content (holes
 * stay holes), type, owner as far as allowed, mode, times, attributes. overlayfs' own marks
 * and whiteouts stay behind. @to must not exist. *objects counts. Returns 0 or -errno;
 * after a failure a part may be there.
 */
int copy_object(int fromdir, const char *from, int todir, const char *to,
		uint64_t *objects);

/* Content alone, into an empty file: holes stay holes. @share: blocks are shared where the
 * filesystem can do that. */
int copy_data(int in, int out, off_t size, bool share);

/* Extended attributes alone; overlayfs' own are left out. */
int copy_attrs(int fromdir, const char *from, int todir, const char *to);

#endif
