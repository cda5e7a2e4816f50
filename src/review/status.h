/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_REVIEW_STATUS_H
#define STET_REVIEW_STATUS_H

#include "call/facts.h"
#include "call/verb.h"
#include "commit/commit.h"
#include "inplace/inplace.h"
#include "session/changes.h"

struct status_req {
	struct verb_common common;
	const char *txn;
	bool all;  /* list what lies below added and deleted directories, too */
	bool bare; /* no verb was typed: having no transaction is no error */
};

struct status_res {
	struct txn_facts txn;
	bool none; /* bare, and there is no transaction here: nothing else is set */
	bool all;
	struct txn_sides sides;
	struct change_layer *layers; /* of sides */
	size_t nlayers;
	struct home *h; /* the caller's */
	struct changes changes;
	struct change_totals totals;
	struct diff_rules *rules; /* while it is made */
	struct path_notes risks;  /* of what is not decided yet: what deserves a look */
	bool durable;		  /* a power cut would not cost it */
	uint64_t held;		  /* by committed and rolled-back transactions, in all */
};

/* Not pruned, and its changes are not the host's, nor becoming so. */
bool op_has_changes(const struct txn_record *rec);

#endif
