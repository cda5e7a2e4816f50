/* SPDX-License-Identifier: Apache-2.0 */
#include "host/put_back.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/moved.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "plan/plan.h"
#include "txn/find.h"

struct version {
	uint64_t key;	     /* of the path */
	int64_t from, until; /* of the operation that put it there */
	size_t end; /* its transaction, which has perhaps been at other names of it since */
	uint32_t layer;
	uint64_t place; /* see moved_place() */
	bool known;	/* it was there at the moment from which on changes count */
	struct ident id;
};

/* When the last operation of a transaction ended, and until when it has moved what. */
struct end {
	int64_t txn, ns;
	int dir; /* -1: not known */
	struct moved *moved;
};

struct put_back {
	struct home *home;
	int64_t since;
	bool loaded;
	struct version *v;
	size_t n;
	struct end *ends;
	size_t nends;
	/* While a plan is read: */
	struct change_layer *layers;
	size_t nlayers;
	const struct op_record *op;
	/*
	 * The objects are those that the steps make, not those that they take away: the
	 * operation did the steps again.
	 */
	bool did;
	/* Operations to be read, when the journal has been gone through. */
	struct op_record *ops;
	size_t nops;
};

struct put_back *put_back_new(struct home *h, int64_t since)
{
	struct put_back *u = xcalloc(1, sizeof(*u));

	u->home = h;
	u->since = since;
	return u;
}

void put_back_free(struct put_back *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->nops; i++)
		op_record_free(&u->ops[i]);
	free(u->ops);
	for (size_t i = 0; i < u->nends; i++) {
		moved_free(u->ends[i].moved);
		cleanup_close(&u->ends[i].dir);
	}
	free(u->ends);
	free(u->v);
	free(u);
}

struct put_back *put_backs_since(struct put_backs *all, struct home *h, int64_t since)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i]->since == since)
			return all->v[i];
	all->v = xrealloc(all->v, (all->n + 1) * sizeof(struct put_back *));
	all->v[all->n] = put_back_new(h, since);
	return all->v[all->n++];
}

void put_backs_free(struct put_backs *all)
{
	for (size_t i = 0; i < all->n; i++)
		put_back_free(all->v[i]);
	free(all->v);
}

static uint64_t key_of(const char *path)
{
	return XXH64(path, strlen(path), 0);
}

static struct end *end_of(struct put_back *u, int64_t txn)
{
	for (size_t i = u->nends; i > 0; i--)
		if (u->ends[i - 1].txn == txn)
			return &u->ends[i - 1];
	if ((u->nends & (u->nends - 1)) == 0)
		u->ends = xrealloc(u->ends,
				   (u->nends ? 2 * u->nends : 8) * sizeof(*u->ends));
	u->ends[u->nends] = (struct end){ .txn = txn, .dir = -1 };
	return &u->ends[u->nends++];
}

static int keep_op(void *arg, struct op_record *r, struct err *e)
{
	struct put_back *u = arg;
	bool back = r->state == OP_REVERSED ||
		    (r->state == OP_DONE && (r->kind == OP_UNDO || r->kind == OP_REDO));
	struct end *end;

	(void)e;
	if (r->done_ns < u->since)
		return 0;
	end = end_of(u, r->txn);
	end->ns = r->done_ns > end->ns ? r->done_ns : end->ns;
	if (!back || !r->plan)
		return 0;
	if ((u->nops & (u->nops - 1)) == 0)
		u->ops = xrealloc(u->ops, (u->nops ? 2 * u->nops : 8) * sizeof(*u->ops));
	u->ops[u->nops++] = *r;
	*r = (struct op_record){ 0 };
	return 0;
}

/*
 * The identity that a step leaves when it is done: attributes are set on the host's own inode.
 */
static struct ident done_by(const struct plan_rec *r)
{
	struct ident id = r->after;

	if ((r->kind != PLAN_META && r->kind != PLAN_DIR) || !r->before.mode)
		return id;
	if (r->flags & PLAN_TIMES) {
		id = r->before;
		id.mtime = r->after.mtime;
	}
	id.ino = r->before.ino;
	id.btime = r->before.btime;
	return id;
}

static int keep_version(void *arg, const struct plan_rec *r, struct err *e)
{
	struct put_back *u = arg;
	const struct ident id = u->did ? done_by(r) : r->before;
	AUTO_FREE char *path = NULL;

	(void)e;
	if (!id.mode || r->kind == PLAN_BASE || r->layer >= u->nlayers)
		return 0;
	path = xasprintf("%s/%s", u->layers[r->layer].host, r->rel);
	if ((u->n & (u->n - 1)) == 0)
		u->v = xrealloc(u->v, (u->n ? 2 * u->n : 64) * sizeof(*u->v));
	u->v[u->n++] = (struct version){ .key = key_of(path),
					 .from = u->op->begun_ns,
					 .until = u->op->done_ns,
					 .end = (size_t)(end_of(u, u->op->txn) - u->ends),
					 .layer = r->layer,
					 .place = moved_place(r->layer, r->rel),
					 .known = u->did || id.ctime < u->since,
					 .id = id };
	return 0;
}

/* The objects of a later commit are somebody's work, however often they were put back. */
static bool is_later(const struct put_back *u, const struct op_record *op)
{
	struct op_record commit = { 0 };
	struct err e;
	bool later = journal_op_get(u->home->journal, op->target, &commit, &e) < 0 ||
		     commit.done_ns > u->since;

	op_record_free(&commit);
	return later;
}

/* For objects with several names: the last operation that has moved them may be a later one. */
static void know_moves(struct put_back *u, const struct txn_record *t, int *dir)
{
	struct end *end = end_of(u, t->id);

	if (end->moved)
		return;
	end->dir = TAKE_FD(*dir);
	end->moved = moved_new(u->home, t->id, t->begin_ns, end->dir);
}

static void read_op(struct put_back *u, const struct op_record *op)
{
	struct txn_record t = { 0 };
	AUTO_CLOSE int dir = -1;
	struct plan *p = NULL;
	struct err e;

	u->op = op;
	u->did = op->kind == OP_REDO ? op->state == OP_DONE
				     : op->kind == OP_UNDO && op->state == OP_REVERSED;
	if ((u->did && is_later(u, op)) ||
	    journal_txn_get(u->home->journal, op->txn, &t, &e) < 0)
		return;
	if (t.state != TXN_PRUNED)
		dir = open(t.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0 && plan_open(dir, op->plan, &p, &e) == 0) {
		u->layers = txn_layers(&t, &u->nlayers);
		plan_each(p, false, keep_version, u, &e);
		free(u->layers);
		plan_close(p);
		know_moves(u, &t, &dir);
	}
	txn_record_free(&t);
}

static int by_key(const void *a, const void *b)
{
	const struct version *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->id.ctime < y->id.ctime ? -1 : x->id.ctime > y->id.ctime;
}

/*
 * Has it got its ctime from its transaction in another way: by another of its names, or, a
 * directory, by a later operation that had a step at its path?
 */
static bool is_moved(const struct put_back *u, const struct version *v,
		     const struct ident *id)
{
	const struct end *end = &u->ends[v->end];

	if (id->ctime >= end->ns || !end->moved)
		return false;
	if (S_ISDIR(id->mode))
		return id->ctime < moved_place_until(end->moved, v->place);
	return id->nlink > 1 && id->ctime < moved_until(end->moved, v->layer, NULL, id);
}

static bool is_version(const struct put_back *u, const struct version *v,
		       const struct ident *id)
{
	return v->known && ident_same(&v->id, id) && id->ctime >= v->from &&
	       (id->ctime < v->until || is_moved(u, v, id));
}

/*
 * An object that an operation has found, and put back, may have been changed by others before:
 * it counts only if it was there before, or was put back itself. Older operations come first.
 */
static void trace(struct put_back *u)
{
	for (size_t i = 0, first = 0; i < u->n; i++) {
		if (u->v[i].key != u->v[first].key)
			first = i;
		for (size_t k = first; k < u->n && u->v[k].key == u->v[i].key; k++)
			if (!u->v[i].known && is_version(u, &u->v[k], &u->v[i].id))
				u->v[i].known = true;
	}
}

static void load(struct put_back *u)
{
	struct err e;

	u->loaded = true;
	if (journal_op_each(u->home->journal, 0, keep_op, u, &e) < 0)
		return;
	for (size_t i = 0; i < u->nops; i++)
		read_op(u, &u->ops[i]);
	if (u->n)
		qsort(u->v, u->n, sizeof(*u->v), by_key);
	trace(u);
}

bool put_back_has(void *arg, const char *path, const struct ident *id)
{
	struct put_back *u = arg;
	uint64_t key = key_of(path);
	size_t low = 0, high;

	if (!u->loaded)
		load(u);
	for (size_t i = 0; !*path && i < u->nends; i++)
		if (u->ends[i].moved)
			moved_read(u->ends[i].moved);
	for (high = u->n; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (u->v[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < u->n && u->v[low].key == key; low++)
		if (is_version(u, &u->v[low], id))
			return true;
	return false;
}
