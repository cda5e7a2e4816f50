/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_STATUS_H
#define STET_OPS_STATUS_H

#include "change/change.h"
#include "ops/verb.h"
#include "txn/commit.h"

struct status_req {
	struct verb_common common;
	const char *txn;
	bool all;  /* list what lies below added and deleted directories, too */
	bool bare; /* no verb was typed: having no transaction is no error */
};

struct status_res {
	bool none; /* bare, and there is no transaction here: nothing else is set */
	bool all;
	struct txn_record rec;
	struct change_layer *layers;
	size_t nlayers;
	struct change_list list; /* renames found; no CHANGE_TIMES alone */
	struct change_totals totals;
	struct path_notes risks; /* of what is not decided yet: what deserves a look */
	bool durable;		 /* a power cut would not cost it */
	uint64_t held;		 /* by committed and rolled-back transactions, in all */
};

int op_status(struct op_ctx *ctx, const void *req, void *res, struct err *e);

/* Path a change was renamed from, or NULL. */
const char *change_item_from(const struct change_list *l, const struct change_item *it);

/*
 * Collects the differences of a transaction, all or those at and below @paths, leaves out
 * what differs in its times alone, and finds renames if asked. A pruned one has none, nor
 * has one whose changes are the host's, or becoming so.
 */
int op_collect(const struct txn_record *rec, const struct change_layer *layers, size_t n,
	       const char *const *paths, bool renames, struct change_list *l,
	       struct err *e);

/* Takes out what differs in its times alone. */
void op_leave_out_times(struct change_list *l);

#endif
