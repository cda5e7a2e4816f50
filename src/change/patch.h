/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CHANGE_PATCH_H
#define STET_CHANGE_PATCH_H

#include "base/buf.h"
#include "change/change.h"

/*
 * Textual form of one change, in git's extended unified format: header lines
 * (diff --git, old/new mode, new file/deleted file mode, rename from/to, Binary files
 * differ), hunks by libgit2, and comment lines beginning with "# " for what git cannot
 * say (owner, xattrs, device numbers, FIFOs). Names are quoted (base/text.h);
 * content lines are raw: the front end escapes them for a terminal.
 *
 * libgit2 is loaded with dlopen on first use: linked in, its 17 libraries would cost
 * every `stet run` more than the whole sandbox does.
 */
struct patch_stat {
	uint64_t added, removed; /* lines */
	bool binary;
	uint64_t size_before, size_after;
};

/* @from: the deleted side of a rename, or NULL. @out and @st may be NULL. */
int patch_make(const struct change_layer *layers, const struct change *c,
	       const struct change *from, struct buf *out, struct patch_stat *st,
	       struct err *e);

#endif
