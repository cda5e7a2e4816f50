/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_DIFF_H
#define STET_REVIEW_DIFF_H

#include "call/facts.h"
#include "call/verb.h"
#include "diff/patch.h"
#include "host/known.h"
#include "inplace/inplace.h"
#include "session/changes.h"

struct diff_req {
	struct verb_common common;
	const char *txn;
	char **paths;
	bool stat, name_status, null, exit_code, no_renames, conflicts;
};

struct diff_res {
	struct txn_facts txn;
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
	struct txn held;
	struct timeline_pair pair;
};

struct verb_call;

/*
 * Finds the changes: verb.run of diff, and of show. Their text is made one by one as it is needed:
 * a transaction may hold more than memory does.
 */
int diff_make(struct verb_call *c, const void *req, void *res, struct err *e);
void diff_free(void *res);

/* Rows of the result, and its list. */
extern const struct field diff_fields[];
int diff_each(const void *res, verb_item_fn *emit, void *arg, struct err *e);

/*
 * For printers. The patch of one of the changes, for --conflicts with what happened there and both
 * sides; or only its lines, counted. Sources of renames have none of their own: skip them.
 */
int diff_text(const struct diff_res *res, const struct change_item *it, struct buf *out,
	      struct err *e);
int diff_lines(const struct diff_res *res, const struct change_item *it,
	       struct patch_stat *st, struct err *e);

#endif
