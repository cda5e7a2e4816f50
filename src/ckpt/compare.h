/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_COMPARE_H
#define STET_CKPT_COMPARE_H

#include "ckpt/ckpt.h"

/*
 * Calls @fn for the differences. @paths: only these paths and what is below them, absolute;
 * NULL: all.
 */
int ck_compare(const struct ck_layers *layers, const struct ck_state *a,
	       const struct ck_state *b, const char *const *paths, ck_diff_fn *fn,
	       void *arg, struct err *e);

#endif
