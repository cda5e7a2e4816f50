/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/blame.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "plan/plan.h"
#include "sys/mountinfo.h"
#include "txn/find.h"

/* More are not shown anyhow, and each is held against every step of every list. */
enum { BLAMED = 50 };

struct search {
	struct path_notes *notes;
	int64_t self, since;
	/* Operations to be read, when the journal has been gone through; newest first. */
	struct op_record *ops;
	size_t n;
	/* While a list is read: */
	const struct change_layer *layers;
	size_t nlayers;
	int64_t txn;
};

static int keep_op(void *arg, struct op_record *r, struct err *e)
{
	struct search *s = arg;

	(void)e;
	if (r->txn == s->self || r->kind != OP_COMMIT || r->state != OP_DONE ||
	    r->undone != OP_STANDS || !r->plan || r->done_ns < s->since)
		return 0;
	if ((s->n & (s->n - 1)) == 0)
		s->ops = xrealloc(s->ops, (s->n ? 2 * s->n : 8) * sizeof(*s->ops));
	s->ops[s->n++] = *r;
	*r = (struct op_record){ 0 };
	return 0;
}

static int match(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct search *s = arg;
	AUTO_FREE char *path = NULL;
	const char *host;

	(void)e;
	if (r->kind == PLAN_DIR || r->kind == PLAN_BASE || r->layer >= s->nlayers)
		return 0;
	host = s->layers[r->layer].host;
	path = xasprintf("%s/%s", strcmp(host, "/") == 0 ? "" : host, r->rel);
	for (size_t i = 0; i < s->notes->n && i < BLAMED; i++) {
		struct path_note *n = &s->notes->v[i];

		/*
		 * A conflict may be about the contents of a directory, or about the directory
		 * of a path.
		 */
		if (!n->by && (path_within(path, n->path) || path_within(n->path, path)))
			n->by = s->txn;
	}
	return 0;
}

static void read_op(struct search *s, struct home *h, const struct op_record *op)
{
	AUTO_FREE struct change_layer *layers = NULL;
	struct txn_record t = { 0 };
	AUTO_CLOSE int dir = -1;
	struct plan *p = NULL;
	struct err e;

	if (journal_txn_get(h->journal, op->txn, &t, &e) < 0)
		return;
	if (t.state != TXN_PRUNED)
		dir = open(t.dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0 && plan_open(dir, op->plan, &p, &e) == 0) {
		s->layers = layers = txn_layers(&t, &s->nlayers);
		s->txn = op->txn;
		plan_each(p, false, match, s, &e);
		plan_close(p);
	}
	txn_record_free(&t);
}

void blame_notes(struct home *h, int64_t self, int64_t since, struct path_notes *n)
{
	struct search s = { .notes = n, .self = self, .since = since };
	struct err e;

	if (!n->n)
		return;
	if (journal_op_each(h->journal, 0, keep_op, &s, &e) == 0)
		for (size_t i = 0; i < s.n; i++)
			read_op(&s, h, &s.ops[i]);
	for (size_t i = 0; i < s.n; i++)
		op_record_free(&s.ops[i]);
	free(s.ops);
}
