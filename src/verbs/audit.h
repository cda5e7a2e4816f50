/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_AUDIT_H
#define STET_VERBS_AUDIT_H

#include "audit/audit.h"
#include "session/verb.h"

struct audit_req {
	struct verb_common common;
	const char *what; /* a transaction, "verify", or NULL */
	bool follow;
};

struct audit_res {
	bool verify;
	/* The books, to be read by whoever prints; NULL if there are none. */
	struct audit_reader *reader;
	char *only; /* `,"txn":"t3",` if one transaction is wanted; or NULL */
	/* Of verify. */
	uint64_t records;
	uint64_t folded; /* execs and exits that were only counted */
	char **wrong;	 /* NULL-ended or NULL */
};

/* Opens the books, or verifies them. */
int op_audit(struct op_ctx *ctx, const void *req, void *res, struct err *e);

/* Is a line of the books wanted? What is no record always is. */
bool audit_wants(const struct audit_res *res, const struct audit_line *l);

#endif
