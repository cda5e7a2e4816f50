/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/state.h"
#include "sys/mountinfo.h"
#include "timeline/known.h"
#include "timeline/parts.h"
#include "timeline/take.h"

static bool is_there(int dirfd, const char *name)
{
	struct stat st;

	/* A look that fails counts as yes. */
	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR);
}

/* Has the state an entry at or below @rel of @layer? */
static bool holds(const struct ck_state *s, uint32_t layer, const char *rel)
{
	size_t len = strlen(rel);

	for (size_t i = 0; i < s->n; i++) {
		const struct ck_entry *en = s->v[i];

		if (en->layer == layer && strncmp(en->rel, rel, len) == 0 &&
		    (!en->rel[len] || en->rel[len] == '/'))
			return true;
	}
	return false;
}

int timeline_knows(struct timeline *c, const char *path, struct err *e)
{
	const char *rel;
	uint32_t layer;
	bool found = false;

	if (is_there(AT_FDCWD, path))
		return 1;
	if (!timeline_layer(c, path, &layer, &rel))
		return 0;
	if (c->layers.v[layer].up >= 0 && is_there(c->layers.v[layer].up, rel))
		return 1;
	for (size_t i = c->all.n; i > 0 && !found; i--) {
		struct ck_state s;

		if (timeline_state(c, c->all.v[i - 1].seq, &s, e) < 0)
			return -1;
		found = holds(&s, layer, rel);
		ck_state_free(&s);
	}
	return found;
}
