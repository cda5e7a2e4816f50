/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_RECORD_H
#define STET_AUDIT_RECORD_H

#include "audit/parts.h"

/* Private to the room. */

/* The fields of a record, without braces, seq, prev and hash. */
void record_exec(const struct audit_exec *x, struct buf *out);

/* The fields of an exec that do not differ from one time to the next. */
void record_command(const struct audit_exec *x, struct buf *out);

/* The record for @count execs that were counted; @command: from record_command(). */
void record_folded(int64_t txn, uint64_t count, const char *command, size_t len,
		   struct buf *out);

void record_rest(const struct fold_sum *s, struct buf *out);
void record_op(const struct audit_op *o, struct buf *out);
void record_exit(int64_t txn, pid_t pid, int status, struct buf *out);
void record_trouble(const char *event, uint64_t n, struct buf *out);

#endif
