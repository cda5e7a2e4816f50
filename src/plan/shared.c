/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "plan/parts.h"
#include "plan/shared.h"
#include "sys/fs.h"

/*
 * Objects with several names. A step that moves one name, or makes another, moves the ctime of
 * the inode, also for a name in a directory that is searched for changes of others.
 */

static void note(struct apply *a, const struct ident *id)
{
	if ((a->nshared & (a->nshared - 1)) == 0)
		a->shared = xrealloc(a->shared, (a->nshared ? 2 * a->nshared : 16) *
							sizeof(*a->shared));
	a->shared[a->nshared++] = *id;
	a->shared_sorted = false;
}

/*
 * The list does not have the object that a link is made to, only its content: that tells it
 * from one that was written to.
 */
static void note_target(struct apply *a, const struct plan_rec *r)
{
	AUTO_CLOSE int dir = -1;
	struct ident target;
	const char *base;

	if (r->layer >= a->n)
		return;
	dir = fs_open_parent(a->roots[r->layer].host, r->link, &base);
	if (dir >= 0 && ident_at(dir, base, &target) == 0 && target.nlink > 1 &&
	    target.mode == r->after.mode && target.size == r->after.size &&
	    target.mtime == r->after.mtime)
		note(a, &target);
}

static void note_one(struct apply *a, const struct ident *id)
{
	if (id->mode && !S_ISDIR(id->mode) && id->nlink > 1)
		note(a, id);
}

void apply_note_shared(struct apply *a, const struct plan_rec *r, bool forward)
{
	struct ident id;

	if (r->kind == PLAN_LINK || r->flags & PLAN_LINKED)
		note_target(a, r);
	switch (r->kind) {
	case PLAN_META: /* the host's inode, before and after */
		if (forward)
			note_one(a, &r->before);
		id = r->after;
		id.ino = r->before.ino;
		id.btime = r->before.btime;
		id.nlink = r->before.nlink;
		note_one(a, &id);
		break;
	case PLAN_REPLACE:
	case PLAN_DELETE:
	case PLAN_CREATE:
		note_one(a, forward ? &r->before : &r->after);
		break;
	default:
		break;
	}
}

static int by_inode(const void *a, const void *b)
{
	uint64_t x = ((const struct ident *)a)->ino, y = ((const struct ident *)b)->ino;

	return x < y ? -1 : x > y;
}

bool apply_is_shared(struct apply *a, const struct ident *id)
{
	size_t low = 0, high = a->nshared;

	if (!a->shared_sorted && a->nshared)
		qsort(a->shared, a->nshared, sizeof(*a->shared), by_inode);
	a->shared_sorted = true;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->shared[mid].ino < id->ino)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < a->nshared && a->shared[low].ino == id->ino; low++)
		if (ident_same(&a->shared[low], id))
			return true;
	return false;
}
