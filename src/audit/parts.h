/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_PARTS_H
#define STET_AUDIT_PARTS_H

#include "audit/audit.h"
#include "base/buf.h"

/* Private to the room. */

enum { HASH_HEX = 64 };

/* Where the chain stands: the last record and the length of the file after it. */
struct chain {
	uint64_t seq, size;
	char hash[HASH_HEX + 1];
};

/* Before the first record. */
void chain_start(struct chain *c);

/* SHA-256 in hexadecimal digits. */
void hash_hex(const void *data, size_t len, char hex[HASH_HEX + 1]);

/*
 * Is @line a record that follows @c? NULL if so, and *c moves on to it (but for its size);
 * else what is wrong, and *c takes over what the line claims, if it is a record at all, so that
 * one fault is told once. *seq: what it claims, or 0.
 */
const char *chain_follow(struct chain *c, const char *line, size_t len, uint64_t *seq);

/* The head: -ENOENT if there is none, -EBADMSG if it is not one. */
int head_read(int fd, struct chain *c);
int head_write(int fd, const struct chain *c);

/* The fields of a record, without braces, seq, prev and hash. */
void record_exec(const struct audit_exec *x, struct buf *out);
/* Of the same what does not differ from one time to the next. */
void record_command(const struct audit_exec *x, struct buf *out);
/* So many of them were counted; @command: what that gave. */
void record_folded(int64_t txn, uint64_t count, const char *command, size_t len,
		   struct buf *out);
struct fold_sum {
	int64_t txn;
	uint64_t execs, denied, exits, failed;
};
void record_rest(const struct fold_sum *s, struct buf *out);
void record_op(const struct audit_op *o, struct buf *out);
void record_exit(int64_t txn, pid_t pid, int status, struct buf *out);
void record_trouble(const char *event, uint64_t n, struct buf *out);

#endif
