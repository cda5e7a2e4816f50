/* SPDX-License-Identifier: Apache-2.0 */
#include "txn/undone.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "change/plan.h"

struct version {
	uint64_t key; /* of the path */
	int64_t from, until;
	struct ident id;
};

/* When the last operation of a transaction ended. */
struct end {
	int64_t txn, ns;
};

struct undone {
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
	int64_t from, until;
	/* What is there is what the steps make, not what they take away: it did them again. */
	bool did;
	/* Operations to be read, when the journal has been gone through. */
	struct op_record *ops;
	size_t nops;
};

struct undone *undone_new(struct home *h, int64_t since)
{
	struct undone *u = xcalloc(1, sizeof(*u));

	u->home = h;
	u->since = since;
	return u;
}

void undone_free(struct undone *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->nops; i++)
		op_record_free(&u->ops[i]);
	free(u->ops);
	free(u->ends);
	free(u->v);
	free(u);
}

static uint64_t key_of(const char *path)
{
	return XXH64(path, strlen(path), 0);
}

static struct end *end_of(struct undone *u, int64_t txn)
{
	for (size_t i = u->nends; i > 0; i--)
		if (u->ends[i - 1].txn == txn)
			return &u->ends[i - 1];
	if ((u->nends & (u->nends - 1)) == 0)
		u->ends = xrealloc(u->ends,
				   (u->nends ? 2 * u->nends : 8) * sizeof(*u->ends));
	u->ends[u->nends] = (struct end){ .txn = txn };
	return &u->ends[u->nends++];
}

static int keep_op(void *arg, struct op_record *r, struct err *e)
{
	struct undone *u = arg;
	bool back = (r->kind == OP_COMMIT && r->state == OP_DONE && r->undone) ||
		    (r->kind == OP_UNDO && r->part && r->state == OP_DONE &&
		     r->redone != 1) ||
		    (r->kind == OP_REDO && r->state == OP_DONE) ||
		    r->state == OP_REVERSED;
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

/* What a step leaves if it is done: attributes are set on the host's own inode. */
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
	struct undone *u = arg;
	const struct ident id = u->did ? done_by(r) : r->before;
	AUTO_FREE char *path = NULL;

	(void)e;
	if (!id.mode || r->kind == PLAN_BASE || r->layer >= u->nlayers)
		return 0;
	path = xasprintf("%s/%s", u->layers[r->layer].host, r->rel);
	if ((u->n & (u->n - 1)) == 0)
		u->v = xrealloc(u->v, (u->n ? 2 * u->n : 64) * sizeof(*u->v));
	u->v[u->n++] = (struct version){ key_of(path), u->from, u->until, id };
	return 0;
}

static void read_op(struct undone *u, const struct op_record *op)
{
	struct txn_record t = { 0 };
	AUTO_CLOSE int dir = -1;
	struct plan *p = NULL;
	struct err e;

	if (journal_txn_get(u->home->journal, op->txn, &t, &e) < 0)
		return;
	if (t.state != TXN_PRUNED)
		dir = open(t.dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0 && plan_open(dir, op->plan, &p, &e) == 0) {
		u->layers = txn_layers(&t, &u->nlayers);
		u->did = op->kind == OP_REDO
				 ? op->state == OP_DONE
				 : op->kind == OP_UNDO && op->state == OP_REVERSED;
		u->from = u->did ? op->begun_ns : 0;
		u->until = u->did ? op->done_ns : end_of(u, op->txn)->ns;
		plan_each(p, false, keep_version, u, &e);
		free(u->layers);
		plan_close(p);
	}
	txn_record_free(&t);
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = ((const struct version *)a)->key;
	uint64_t y = ((const struct version *)b)->key;

	return x < y ? -1 : x > y;
}

static void load(struct undone *u)
{
	struct err e;

	u->loaded = true;
	if (journal_op_each(u->home->journal, 0, keep_op, u, &e) < 0)
		return;
	for (size_t i = 0; i < u->nops; i++)
		read_op(u, &u->ops[i]);
	if (u->n)
		qsort(u->v, u->n, sizeof(*u->v), by_key);
}

bool undone_put_back(void *arg, const char *path, const struct ident *id)
{
	struct undone *u = arg;
	uint64_t key = key_of(path);
	size_t low = 0, high;

	if (!u->loaded)
		load(u);
	for (high = u->n; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (u->v[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < u->n && u->v[low].key == key; low++)
		if (ident_same(&u->v[low].id, id) && id->ctime >= u->v[low].from &&
		    id->ctime < u->v[low].until)
			return true;
	return false;
}
