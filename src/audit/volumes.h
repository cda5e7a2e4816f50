/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_VOLUMES_H
#define STET_AUDIT_VOLUMES_H

#include "audit/parts.h"

/*
 * Volumes that are full. When audit.jsonl has grown to AUDIT_VOLUME_MAX it is copied to
 * `audit-SEQ.jsonl`, SEQ being its last record, and begins anew; the chain goes on. Of those
 * volumes AUDIT_VOLUMES are kept. Before the oldest goes, `audit.anchor` takes up where the
 * chain stands after it: from there it can be followed, and what went is known by number.
 * The file of the writers stays the same, so that they need not look for another.
 */
enum { AUDIT_VOLUME_MAX = 32 << 20, AUDIT_VOLUMES = 8 };

struct volumes {
	uint64_t *v; /* last records of the volumes, ascending */
	size_t n;
};
int volumes_list(int dir, struct volumes *s); /* -errno */
void volumes_free(struct volumes *s);

/* "audit-00000000000000000123.jsonl" */
enum { VOLUME_NAME = 40 };
void volume_name(uint64_t seq, char name[VOLUME_NAME]);

/* Is there a volume that ends with this record? */
bool volumes_has(int dir, uint64_t seq);

/* Where the chain stands before the first record that is left. -ENOENT: at its beginning. */
int anchor_read(int dir, struct chain *c);

/*
 * Under the lock, the file being whole up to *c: puts it on the shelf and empties it; the
 * oldest volumes go. c->size becomes 0; *gone: the last record that went now, or 0. On
 * failure the file is as it was.
 */
int volumes_put(int dir, int log, struct chain *c, uint64_t *gone);

#endif
