/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_PARTS_H
#define STET_AUDIT_PARTS_H

#include "audit/audit.h"
#include "base/buf.h"

/* Private to the room. */

enum { HASH_HEX = 64 };

/* The end of the chain: the last record, and the length of the file behind it. */
struct chain {
	uint64_t seq, size;
	char hash[HASH_HEX + 1];
};

/* Before the first record. */
void chain_start(struct chain *c);

/* SHA-256 in hexadecimal digits. */
void hash_hex(const void *data, size_t len, char hex[HASH_HEX + 1]);

/* The head: -ENOENT if there is none, -EBADMSG if it is not one. */
int head_read(int fd, struct chain *c);
int head_write(int fd, const struct chain *c);

struct fold_sum {
	int64_t txn;
	uint64_t execs, denied, exits, failed;
};

#endif
