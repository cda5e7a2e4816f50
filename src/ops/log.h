/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_LOG_H
#define STET_OPS_LOG_H

#include "ops/verb.h"

struct log_req {
	struct verb_common common;
	const char *txn;
	bool ops; /* what is shown anyway */
};

struct log_res {
	struct op_record *v; /* newest first */
	size_t n, cap;
};

int op_log(struct op_ctx *ctx, const void *req, void *res, struct err *e);

#endif
