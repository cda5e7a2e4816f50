/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_LIST_H
#define STET_VERBS_LIST_H

#include "session/verb.h"

struct list_req {
	struct verb_common common;
	bool all, ids;
};

struct list_res {
	bool ids;
	struct txn_record *v; /* newest first */
	size_t n, cap;
};

int op_list(struct op_ctx *ctx, const void *req, void *res, struct err *e);

#endif
