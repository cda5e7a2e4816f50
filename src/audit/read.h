/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_READ_H
#define STET_AUDIT_READ_H

#include "audit/audit.h"
#include "audit/parts.h"

/* Opens the audit for reading, while others may write. -ENOENT: there is none. */
int audit_reader_open(const char *dir, struct audit_reader **out);

void audit_reader_close(struct audit_reader *r); /* NULL is fine */

/* The next whole line: 1; 0 if there is none yet; -errno. *l lives until the next call. */
int audit_read(struct audit_reader *r, struct audit_line *l);

/* Waits until there may be more: 0; -EINTR after a signal; another -errno. */
int audit_wait(struct audit_reader *r);

int audit_verify(const char *dir, audit_complain *fn, void *arg, uint64_t *records,
		 struct err *e);

/*
 * Is @line a record that follows @c? NULL if so, and *c moves on to it (but for its size).
 * Otherwise says what is wrong, and *c takes over what the line claims, if it is a record at
 * all, so that one fault is reported once. *seq: the number that the line claims, or 0.
 */
const char *chain_follow(struct chain *c, const char *line, size_t len, uint64_t *seq);

#endif
