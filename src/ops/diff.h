/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_DIFF_H
#define STET_OPS_DIFF_H

#include "change/change.h"
#include "change/patch.h"
#include "ops/verb.h"

struct diff_req {
	struct verb_common common;
	const char *txn;
	char **paths;
	bool stat, name_status, null, exit_code, no_renames, no_pager;
};

struct diff_res {
	struct txn_record rec;
	struct change_layer *layers;
	size_t nlayers;
	struct change_list list;
};

/*
 * Finds the changes. Their text is made one by one, with diff_patch(), as it is needed: a
 * transaction may hold more than memory does.
 *
 * A first operand that names no transaction is taken for a path. ERR_USAGE if a path
 * neither exists nor was changed.
 */
int op_diff(struct op_ctx *ctx, const void *req, void *res, struct err *e);

/* patch_make() for item @i. Sources of renames have none of their own: skip them. */
int diff_patch(const struct diff_res *res, size_t i, struct buf *out,
	       struct patch_stat *st, struct err *e);

#endif
