/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_EXPLORE_H
#define STET_VERBS_EXPLORE_H

#include "call/facts.h"
#include "call/verb.h"
#include "runner/runner.h"

struct explore_req {
	struct verb_common common;
	const char *txn;
	char **argv; /* NULL: the user's shell */
	const char *at;
	char **sockets; /* as typed */
};

struct explore_res {
	struct txn_facts txn;
	struct run_result run;
	bool was_copy; /* of a checkpoint: nothing of the visit is left */
};

#endif
