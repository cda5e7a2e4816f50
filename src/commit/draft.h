/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_DRAFT_H
#define STET_COMMIT_DRAFT_H

#include "commit/commit.h"
#include "plan/apply.h"
#include "txn/chosen.h"

/* Private to the room: making a change list out of what differs. */

/*
 * Writes the file @name (a plan) in the transaction's directory @dirfd: the steps that make
 * the host what the transaction is, at the paths of @w, and fills in @res: conflicts,
 * risks, totals. Touches nothing else. The plan is finished and durable if there was no
 * conflict; otherwise (and in a dry run) it is deleted again.
 */
int draft_make(struct home *h, const struct txn *t, const struct commit_wish *w,
	       struct apply *a, const struct change_layer *layers, size_t n, int dirfd,
	       const char *name, struct commit_result *res, struct err *e);

#endif
