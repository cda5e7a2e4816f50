/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_AUDIT_H
#define STET_VERBS_AUDIT_H

#include "audit/audit.h"
#include "call/verb.h"

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

/*
 * The next record, for a printer: 1, 0 if there is none any more or none yet, or -1. The text of
 * @l belongs to the result until the next call.
 */
struct audit_line;
int audit_next(const struct audit_res *res, struct audit_line *l, struct err *e);

/* Waits for more. 1, 0 if a signal ended the wait, or -1. */
int audit_more(const struct audit_res *res, struct err *e);

#endif
