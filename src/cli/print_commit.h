/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_PRINT_COMMIT_H
#define STET_CLI_PRINT_COMMIT_H

#include "cli/cli.h"

/* The same for a commit; @rq: what was asked for, NULL if a run asked for it. */
int explain_refusal(struct cli *c, const struct txn_record *rec,
		    const struct commit_req *rq, const struct commit_result *r,
		    const struct err *e);

#endif
