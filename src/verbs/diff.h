/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_DIFF_H
#define STET_VERBS_DIFF_H

#include "diff/patch.h"
#include "host/known.h"
#include "inplace/inplace.h"
#include "session/changes.h"
#include "session/verb.h"

struct diff_req {
	struct verb_common common;
	const char *txn;
	char **paths;
	bool stat, name_status, null, exit_code, no_renames, conflicts;
};

struct diff_res {
	struct txn_record rec;
	struct txn_sides sides;
	struct change_layer *layers; /* of sides, or of the pair below */
	size_t nlayers;
	struct changes changes;
	char **paths; /* only what lies at or below them; NULL: all */
	/* --conflicts: the changes are these alone. */
	struct path_notes conflicts;
	struct known *known; /* what the transaction saw; or NULL */
	/* Between two checkpoints: what the layers point to. */
	int64_t from, to; /* both 0: against the host */
	struct timeline *checks;
	struct txn txn;
	struct timeline_pair pair;
};

/*
 * Finds the changes. Their text is made one by one, with diff_patch(), as it is needed: a
 * transaction may hold more than memory does.
 *
 * A first operand that names no transaction is taken for a path. ERR_USAGE if a path
 * neither exists nor was changed; ERR_STATE if the transaction's changes are the host's.
 */
int op_diff(struct op_ctx *ctx, const void *req, void *res, struct err *e);
void diff_free(void *res);

/* patch_make() for one of them. Sources of renames have none of their own: skip them. */
int diff_patch(const struct diff_res *res, const struct change_item *it, struct buf *out,
	       struct patch_stat *st, struct err *e);

#endif
