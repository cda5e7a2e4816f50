/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/hardlinks.h"

#include <stdlib.h>

#include "base/buf.h"

/* The slot of the inode, or the free slot for it. */
static size_t *slot(const struct hardlinks *t, uint32_t layer, uint64_t ino)
{
	size_t i = (ino * UINT64_C(0x9e3779b97f4a7c15) + layer) >> 20;

	for (i &= t->nslots - 1; t->slots[i]; i = (i + 1) & (t->nslots - 1))
		if (t->v[t->slots[i] - 1].rec.after.ino == ino &&
		    t->v[t->slots[i] - 1].rec.layer == layer)
			break;
	return &t->slots[i];
}

static void grow(struct hardlinks *t)
{
	free(t->slots);
	t->nslots = t->nslots ? 2 * t->nslots : 64;
	t->slots = xcalloc(t->nslots, sizeof(*t->slots));
	for (size_t i = 0; i < t->n; i++) {
		size_t *s = slot(t, t->v[i].rec.layer, t->v[i].rec.after.ino);

		if (!*s)
			*s = i + 1;
	}
}

void hardlinks_add(struct hardlinks *t, const struct plan_rec *r)
{
	size_t *s;

	if ((t->n & (t->n - 1)) == 0)
		t->v = xrealloc(t->v, (t->n ? 2 * t->n : 8) * sizeof(*t->v));
	if (2 * (t->n + 1) > t->nslots)
		grow(t);
	s = slot(t, r->layer, r->after.ino);
	plan_rec_copy(&t->v[t->n].rec, r);
	t->v[t->n++].names = 1;
	if (*s)
		t->v[*s - 1].names++;
	else
		*s = t->n;
}

const struct hardlink *hardlinks_find(const struct hardlinks *t, uint32_t layer,
				      uint64_t ino)
{
	size_t at = t->nslots ? *slot(t, layer, ino) : 0;

	return at ? &t->v[at - 1] : NULL;
}

size_t hardlinks_count(const struct hardlinks *t, uint32_t layer, uint64_t ino)
{
	const struct hardlink *first = hardlinks_find(t, layer, ino);

	return first ? first->names : 0;
}

void hardlinks_free(struct hardlinks *t)
{
	for (size_t i = 0; i < t->n; i++)
		plan_rec_free(&t->v[i].rec);
	free(t->v);
	free(t->slots);
	*t = (struct hardlinks){ 0 };
}
