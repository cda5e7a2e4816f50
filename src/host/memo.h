/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_MEMO_H
#define STET_HOST_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "host/known.h"

/*
 * Private to known.c: what its questions about directories have led to, so that a deep tree is
 * looked at once and not once for each level.
 */

/* The answer for a directory, for everything beneath it. */
struct memo {
	uint64_t place_key, whole_key; /* 0: nothing */
	enum known_place is;
	int64_t whole_at, newest; /* see find_whole() */
};

/* So many directories; a power of two. */
enum { MEMOS = 1 << 14 };

/* The place for what is found out about @key; what was there about another goes. */
static inline struct memo *memo(struct memo **all, uint64_t key)
{
	if (!*all)
		*all = xcalloc(MEMOS, sizeof(**all));
	return &(*all)[key & (MEMOS - 1)];
}

static inline void note_whole(struct memo **all, uint64_t key, int64_t at, int64_t newest)
{
	struct memo *m = memo(all, key);

	m->whole_key = key;
	m->whole_at = at;
	m->newest = newest;
}

/* Directories from one upwards, of which nothing is known yet. */
struct way {
	struct visited {
		uint64_t key;
		int64_t ctime;
	} * v;
	size_t n;
};

static inline void way_add(struct way *w, uint64_t key, int64_t ctime)
{
	if ((w->n & (w->n - 1)) == 0)
		w->v = xrealloc(w->v, (w->n ? 2 * w->n : 8) * sizeof(*w->v));
	w->v[w->n++] = (struct visited){ key, ctime };
}

#endif
