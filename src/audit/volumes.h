/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_AUDIT_VOLUMES_H
#define STET_AUDIT_VOLUMES_H

#include "audit/parts.h"

/*
 * Full volumes. When audit.jsonl has grown to AUDIT_VOLUME_MAX it is copied to `audit-
 * SEQ.jsonl`, SEQ being its last record, and begins anew; the chain goes on. AUDIT_VOLUMES of
 * them are kept. Before the oldest is deleted, `audit.anchor` takes over the end of its chain:
 * from there the rest can be verified, and the deleted records are known by number. Writers
 * keep the same file, so that they need not look for another.
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

/* The chain before the first record that is left. -ENOENT: it begins there. */
int anchor_read(int dir, struct chain *c);

/*
 * Under the lock, and with the file whole up to *c: copies the file to a volume and empties
 * it; the oldest volumes are deleted. c->size becomes 0; *gone: the last record that was
 * deleted, or 0. On failure the file is as it was.
 */
int volumes_put(int dir, int log, struct chain *c, uint64_t *gone);

#endif
