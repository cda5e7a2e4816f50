/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/image_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/*
 * Enough for the programs that a build or script calls again and again; others cost a look
 * each time.
 */
enum { SLOTS = 256 };

struct slot {
	char *path, *exe;
	const char *known_as;
	unsigned flags;
	struct stat st;
};

struct image_cache {
	struct slot v[SLOTS];
};

struct image_cache *image_cache_new(void)
{
	return xcalloc(1, sizeof(struct image_cache));
}

static void empty(struct slot *s)
{
	free(s->path);
	free(s->exe);
	*s = (struct slot){ 0 };
}

void image_cache_free(struct image_cache *r)
{
	for (size_t i = 0; r && i < SLOTS; i++)
		empty(&r->v[i]);
	free(r);
}

/* FNV-1a. A caller that makes two names share a slot only makes each of them slower. */
static unsigned slot_of(const char *path)
{
	uint32_t h = 2166136261U;

	while (*path)
		h = (h ^ (unsigned char)*path++) * 16777619U;
	return h % SLOTS;
}

bool image_cache_get(const struct image_cache *r, const char *path, struct image *out)
{
	const unsigned at = slot_of(path);
	const struct slot *s = &r->v[at];

	if (!s->path || strcmp(s->path, path) != 0)
		return false;
	out->exe = xstrdup(s->exe);
	out->st = s->st;
	out->flags = s->flags;
	out->known_as = s->known_as;
	out->recalled = at + 1;
	return true;
}

void image_cache_put(struct image_cache *r, const char *path, const struct image *i)
{
	struct slot *s = &r->v[slot_of(path)];

	empty(s);
	*s = (struct slot){ xstrdup(path), xstrdup(i->exe), i->known_as, i->flags,
			    i->st };
}

void image_cache_drop(struct image_cache *r, unsigned recalled)
{
	if (recalled)
		empty(&r->v[recalled - 1]);
}
