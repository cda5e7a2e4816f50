/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_HARDLINKS_H
#define STET_COMMIT_HARDLINKS_H

#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

/* Steps at names of inodes that have several, found by layer and inode (@after's). */
struct hardlink {
	struct plan_rec rec; /* a copy */
	size_t names;	     /* of this inode in the list; right in the first of them */
};

struct hardlinks {
	struct hardlink *v; /* in the order added */
	size_t n;
	size_t *slots; /* places in @v, plus one; by hash */
	size_t nslots; /* a power of two, or 0 */
};

void hardlinks_add(struct hardlinks *t, const struct plan_rec *r);
/* The first that was added of this inode, or NULL. */
const struct hardlink *hardlinks_find(const struct hardlinks *t, uint32_t layer,
				      uint64_t ino);
/* How many names of it there are. */
size_t hardlinks_count(const struct hardlinks *t, uint32_t layer, uint64_t ino);
void hardlinks_free(struct hardlinks *t);

#endif
