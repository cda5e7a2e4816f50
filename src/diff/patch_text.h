/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_PATCH_TEXT_H
#define STET_DIFF_PATCH_TEXT_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Appends the differences between two texts: "--- A", "+++ B" and the hunks; nothing if
 * they are equal. @a and @b name them, and are quoted where that is needed. As in patch.h,
 * content lines are raw. ERR_UNSUPPORTED if libgit2 cannot be loaded.
 */
int patch_text(const char *a, const struct buf *from, const char *b, const struct buf *to,
	       struct buf *out, struct err *e);

#endif
