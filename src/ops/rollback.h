/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_ROLLBACK_H
#define STET_OPS_ROLLBACK_H

#include "change/change.h"
#include "ops/verb.h"

struct rollback_req {
	struct verb_common common;
	const char *txn;
	bool dry_run;
};

struct rollback_res {
	struct txn_record rec;
	bool dry_run;
	struct change_totals totals; /* dry_run only: counting takes time */
};

int op_rollback(struct op_ctx *ctx, const void *req, void *res, struct err *e);

#endif
