/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_LOG_H
#define STET_REVIEW_LOG_H

#include "call/facts.h"
#include "call/verb.h"

struct log_req {
	struct verb_common common;
	const char *txn;
	bool ops; /* operations instead of checkpoints */
};

struct log_res {
	struct op_record *v; /* newest first */
	size_t n, cap;
	bool timeline; /* of @rec: checkpoints, oldest first; nothing else is set */
	struct txn_facts txn;
	struct ckpt_records points;
};

#endif
