/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "inplace/nested.h"
#include "inplace/parts.h"
#include "inplace/trees.h"
#include "snap/store.h"
#include "txn/state.h"

/* Reads snapshot and tree as states, and leaves out the parts that are not compared. */

void trees_close(struct trees *t)
{
	ck_state_free(&t->before);
	ck_state_free(&t->now);
	ck_state_free(&t->edges);
	ck_state_free(&t->covered);
	cleanup_close(&t->layer.past);
	cleanup_close(&t->layer.live);
}

static const struct ck_entry *edge_above(const struct ck_state *edges, const char *rel)
{
	for (size_t i = 0; i < edges->n; i++)
		if (path_within(rel, edges->v[i]->rel))
			return edges->v[i];
	return NULL;
}

/* Entries that a mount covers now are moved to @covered, if that is not NULL. */
static void leave_out(const struct trees *t, struct ck_state *s, struct ck_state *covered)
{
	size_t k = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct ck_entry *edge = edge_above(&t->edges, s->v[i]->rel);

		if (!edge && !inplace_is_store(t->rec, s->v[i]->rel))
			s->v[k++] = s->v[i];
		else if (covered && edge && edge->flags & CK_MOUNT)
			ck_state_add(covered, s->v[i]);
		else
			ck_unref(s->v[i]);
	}
	s->n = k;
}

/*
 * The comparison leaves out only paths that the command could not change: mounts, which are the
 * host's; stores that were hidden from the command; and subvolumes that are at the same path in
 * both trees. A subvolume in one of the trees alone is a change.
 */
static void find_edges(struct trees *t)
{
	for (size_t i = 0; i < t->now.n; i++) {
		struct ck_entry *en = t->now.v[i], *was;

		if (!(en->flags & CK_EDGE))
			continue;
		was = ck_find(&t->before, 0, en->rel);
		if (en->flags & CK_MOUNT || (was && was->flags & CK_EDGE))
			ck_state_add(&t->edges, ck_ref(en));
	}
}

/*
 * True for a store that was hidden from the command, and for another user's store, which an
 * ordinary user can neither make nor read. Any other directory with such a name may be the
 * command's work.
 */
static bool is_store(const void *arg, const char *rel, const struct ident *id)
{
	if (!S_ISDIR(id->mode) || strchr(rel, '/'))
		return false;
	return inplace_is_store(arg, rel) ||
	       (geteuid() != 0 && id->uid != geteuid() && store_named(rel, id->uid));
}

static int scan(const struct trees *t, int fd, struct ck_state *out, struct err *e)
{
	struct ck_layer l = t->layer;
	struct ck_layers one = { &l, 1 };
	struct ck_scan s = {
		.layers = &one, .whole = true, .edge = is_store, .edge_arg = t->rec
	};

	l.up = fd;
	return ck_scan(&s, out, e);
}

int trees_scan(const struct trees *t, int fd, struct ck_state *out,
	       struct ck_state *covered, struct err *e)
{
	if (scan(t, fd, out, e) < 0)
		return -1;
	leave_out(t, out, covered);
	return 0;
}

int trees_open(const struct txn_record *r, int now, struct trees *t, struct err *e)
{
	const char *dir = txn_in_place(r);
	AUTO_CLOSE int place = inplace_open(r, e), other = now;

	*t = (struct trees){ .rec = r,
			     .layer = { .up = -1,
					.host = -1,
					.objects = -1,
					.past = -1,
					.live = -1,
					.path = dir,
					.lax = geteuid() != 0 } };
	t->layers = (struct ck_layers){ &t->layer, 1 };
	if (place < 0)
		return -1;
	t->layer.past = openat(place, BEFORE,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->layer.past < 0)
		return err_sys(e, errno, "the snapshot of %s is gone", dir);
	t->layer.live = other >= 0 ? TAKE_FD(other)
				   : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->layer.live < 0)
		return err_sys(e, errno, "%s", dir);
	t->layer.host = t->layer.up = t->layer.live;
	if (scan(t, t->layer.past, &t->before, e) < 0 ||
	    scan(t, t->layer.live, &t->now, e) < 0)
		return -1;
	find_edges(t);
	leave_out(t, &t->before, &t->covered);
	leave_out(t, &t->now, NULL);
	return 0;
}

int trees_past(const struct txn_record *r, const char *name)
{
	struct err ignored;
	AUTO_CLOSE int place = inplace_open(r, &ignored);

	return place < 0 ? -1
			 : openat(place, name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}
