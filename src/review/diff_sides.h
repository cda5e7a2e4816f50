/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_DIFF_SIDES_H
#define STET_REVIEW_DIFF_SIDES_H

#include "review/diff.h"

/* For --conflicts: what happened at a path, in words; NULL if nothing did. */
const char *diff_conflict(const struct diff_res *res, const char *path);

/*
 * Both sides of a change: the host's against the transaction's and, where it is known what
 * the transaction saw, each against that. Texts have the labels "base", "host" and
 * "transaction"; what is no text on both sides has the form of patch_make().
 */
int diff_sides(const struct diff_res *res, const struct change_item *it, struct buf *out,
	       struct err *e);

#endif
