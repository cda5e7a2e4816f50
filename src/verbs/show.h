/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_SHOW_H
#define STET_VERBS_SHOW_H

#include "verbs/diff.h"

struct show_res {
	struct diff_res diff;
	const struct ckpt_record *point; /* the diff's own; NULL: the beginning */
};

/* One checkpoint: what is known of it, and what it changed. The request is a diff's. */
int op_show(struct op_ctx *ctx, const void *req, void *res, struct err *e);

#endif
