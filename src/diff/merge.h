/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_MERGE_H
#define STET_DIFF_MERGE_H

#include "base/buf.h"
#include "base/err.h"

/*
 * Three-way merge of text by libgit2. Returns 1 with the result in @out, 0 if both sides
 * changed the same lines (then @out is empty), -1 with *e if libgit2 cannot be asked.
 */
int merge_text(const struct buf *base, const struct buf *ours, const struct buf *theirs,
	       struct buf *out, struct err *e);

#endif
