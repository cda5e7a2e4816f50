/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_TWINS_H
#define STET_TXN_TWINS_H

#include <stddef.h>
#include <stdint.h>

#include "change/plan.h"

/* Steps at names of inodes that have several, found by layer and inode (@after's). */
struct twin {
	struct plan_rec rec; /* a copy */
	size_t names;	     /* of this inode in the list; right in the first of them */
};

struct twins {
	struct twin *v; /* in the order added */
	size_t n;
	size_t *slots; /* places in @v, plus one; by hash */
	size_t nslots; /* a power of two, or 0 */
};

void twins_add(struct twins *t, const struct plan_rec *r);
/* The first that was added of this inode, or NULL. */
const struct twin *twins_find(const struct twins *t, uint32_t layer, uint64_t ino);
/* How many names of it there are. */
size_t twins_count(const struct twins *t, uint32_t layer, uint64_t ino);
void twins_free(struct twins *t);

#endif
