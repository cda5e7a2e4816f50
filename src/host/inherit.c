/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/inherit.h"
#include "host/known.h"
#include "host/moved.h"
#include "journal/op_rows.h"
#include "plan/content.h"
#include "txn/find.h"
#include "txn/parts.h"

/* Hands the knowledge of a transaction about the host to a fork of it. */

static const char *const bases[] = KNOWN_BASES;

bool known_tells(const struct op_record *r, bool *undone)
{
	bool part = r->kind == OP_UNDO && r->part && r->state == OP_DONE &&
		    r->redone != 1;

	/* A reversed operation has moved objects away and back: their ctime is our doing. */
	*undone = part || r->undone || r->state == OP_REVERSED;
	return (r->kind == OP_COMMIT || part) && r->plan &&
	       (r->state == OP_DONE || r->state == OP_REVERSED);
}

bool known_attrs(const struct plan_rec *r, bool undone, bool digests, uint64_t *out)
{
	undone = undone || r->flags & PLAN_UNDONE;
	if (!(r->flags & PLAN_XATTR) || (r->kind != PLAN_DIR && r->kind != PLAN_MKDIR) ||
	    (digests && r->nxbefore != sizeof(*out)))
		return false;
	if (digests)
		memcpy(out, r->xbefore, sizeof(*out));
	else
		*out = undone ? apply_digest_dir(r->xbefore, r->nxbefore)
			      : apply_digest_dir(r->xafter, r->nxafter);
	return true;
}

struct heritage {
	struct home *h;
	int from;
	struct plan_writer *out;
	uint32_t *layers; /* the other's layer for each, or UINT32_MAX */
	size_t nlayers;
	bool undone;
	bool digests; /* the list at hand was handed down to @from by its own origin */
	struct moved *moved; /* what the other has moved itself */
};

static int hand_down(void *arg, const struct plan_rec *r, struct err *e)
{
	struct heritage *g = arg;
	struct plan_rec copy = *r;
	int64_t until = 0;
	uint64_t digest;

	if (r->layer >= g->nlayers || g->layers[r->layer] == UINT32_MAX)
		return 0;
	copy.layer = g->layers[r->layer];
	if (g->undone)
		copy.flags |= PLAN_UNDONE;
	if (r->kind != PLAN_BASE) {
		copy.nxbefore = 0; /* no content */
		until = moved_until(g->moved, r->layer, r->rel,
				    copy.flags & PLAN_UNDONE ? &r->before : &r->after);
	}
	if (known_attrs(r, g->undone, g->digests, &digest)) {
		copy.xbefore = (const char *)&digest;
		copy.nxbefore = sizeof(digest);
	}
	moved_note(&copy, &until);
	return plan_add(g->out, &copy, e);
}

static int hand_down_list(struct heritage *g, const char *name, bool undone,
			  struct err *e)
{
	struct plan *p;
	int r;

	if (faccessat(g->from, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (plan_open(g->from, name, &p, e) < 0)
		return -1;
	g->undone = undone;
	g->digests = strcmp(name, INHERITED) == 0;
	r = plan_each(p, false, hand_down, g, e);
	plan_close(p);
	return r;
}

static int hand_down_op(void *arg, struct op_record *r, struct err *e)
{
	struct heritage *g = arg;
	bool undone;

	return known_tells(r, &undone) ? hand_down_list(g, r->plan, undone, e) : 0;
}

static uint32_t *map_layers(const struct txn_record *from, const struct txn_record *to,
			    size_t *n)
{
	size_t nfrom, nto;
	AUTO_FREE struct change_layer *a = txn_layers(from, &nfrom);
	AUTO_FREE struct change_layer *b = txn_layers(to, &nto);
	uint32_t *map = xcalloc(nfrom + 1, sizeof(*map));

	for (size_t i = 0; i < nfrom; i++) {
		map[i] = UINT32_MAX;
		for (size_t k = 0; k < nto; k++)
			if (strcmp(a[i].host, b[k].host) == 0)
				map[i] = (uint32_t)k;
	}
	*n = nfrom;
	return map;
}

void known_inherit(struct home *h, const struct txn_record *from,
		   const struct txn_record *to)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	AUTO_CLOSE int source = open(from->dir, flags), dir = open(to->dir, flags);
	struct heritage g = { .h = h, .from = source };
	AUTO_FREE uint32_t *layers = NULL;
	struct err e;
	int r;

	if (source < 0 || dir < 0 || plan_create(dir, INHERITED, &g.out, &e) < 0)
		return;
	g.layers = layers = map_layers(from, to, &g.nlayers);
	g.moved = moved_new(h, from->id, from->begin_ns, source);
	/* Newest first: the first one told is believed. */
	r = journal_op_each(h->journal, from->id, hand_down_op, &g, &e);
	if (r == 0)
		r = hand_down_list(&g, INHERITED, false, &e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(bases); i++)
		r = hand_down_list(&g, bases[i], false, &e);
	moved_free(g.moved);
	if (r < 0)
		plan_abandon(g.out);
	else
		plan_finish_lazily(g.out, &e);
}
