/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "ckpt/file.h"
#include "ckpt/object.h"
#include "ckpt/pair.h"
#include "ckpt/state.h"
#include "journal/ckpt_rows.h"
#include "timeline/parts.h"
#include "timeline/thin.h"

/*
 * If there are many checkpoints, those that no user has asked for are thinned out: the newest
 * stay; of the older ones the one goes that leaves the smallest gap for its age.
 */
enum { KEEP_MAX = 256, DENSE = 32 };

static size_t budget(void)
{
	const char *text = getenv("STET_CHECKPOINT_MAX");
	long n = text ? strtol(text, NULL, 10) : 0;

	return n > 0 ? (size_t)n : KEEP_MAX;
}

static ptrdiff_t victim(const struct timeline *c, size_t dense)
{
	const struct ckpt_records *a = &c->all;
	double best = 0;
	ptrdiff_t at = -1;
	struct timespec t;
	int64_t now;

	clock_gettime(CLOCK_REALTIME, &t);
	now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	for (size_t i = 0; i + dense < a->n && i + 1 < a->n; i++) {
		int64_t before = i ? a->v[i - 1].time_ns : c->t->rec.begin_ns;
		double gap = (double)(a->v[i + 1].time_ns - before);
		double age = (double)(now - a->v[i].time_ns) + 1e9;

		if (a->v[i].named || (at >= 0 && gap / age >= best))
			continue;
		best = gap / age;
		at = (ptrdiff_t)i;
	}
	return at;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Deletes objects that only the dropped checkpoint has. After an error they stay. */
static void sweep(struct timeline *c, const struct ck_state *gone)
{
	uint64_t *used = NULL;
	size_t n = 0;
	struct err e;

	for (size_t i = 0; i < c->all.n; i++)
		if (ck_objects(c->dir, c->all.v[i].seq, &used, &n, &e) < 0)
			goto out;
	if (ck_objects(c->dir, 0, &used, &n, &e) < 0)
		goto out;
	if (n)
		qsort(used, n, sizeof(*used), by_number);
	ck_sweep(&c->layers, gone, used, n);
out:
	free(used);
}

/*
 * The next checkpoint takes the difference to the one before over; then @i is not needed any
 * more.
 */
static int drop(struct timeline *c, size_t i, struct err *e)
{
	struct ck_state before = { 0 }, gone = { 0 }, next = { 0 };
	int64_t parent = i ? c->all.v[i - 1].seq : 0, seq = c->all.v[i].seq;
	struct ckpt_record *n = &c->all.v[i + 1];
	struct change_totals t;
	int r;

	r = timeline_state(c, parent, &before, e);
	if (r == 0)
		r = timeline_state(c, seq, &gone, e);
	if (r == 0)
		r = timeline_state(c, n->seq, &next, e);
	if (r == 0)
		r = ck_count(&c->layers, &before, &next, &t, e);
	if (r == 0) {
		n->added = t.added;
		n->modified = t.modified;
		n->deleted = t.deleted;
		n->bytes = t.bytes;
		/* The state was read with the roots of the layers, which are in no file. */
		ck_state_free(&before);
		r = ck_load(c->dir, parent, &before, e);
	}
	if (r == 0)
		r = ck_save(c->dir, n->seq, parent, &before, &next, e);
	if (r == 0)
		r = journal_ckpt_thin(c->h->journal, c->t->rec.id, seq, n, e);
	if (r == 0) {
		ckpt_record_free(&c->all.v[i]);
		memmove(&c->all.v[i], &c->all.v[i + 1],
			(c->all.n - i - 1) * sizeof(*c->all.v));
		c->all.n--;
		if (!FAULT_AT("ckpt.thin"))
			ck_remove(c->dir, seq);
		sweep(c, &gone);
	}
	ck_state_free(&before);
	ck_state_free(&gone);
	ck_state_free(&next);
	return r;
}

void timeline_thin(struct timeline *c)
{
	size_t max = budget();
	struct err e;
	ptrdiff_t i;

	/* One or two at a time, so that a checkpoint never takes long. */
	for (int n = 0; n < 2 && c->all.n > max; n++) {
		i = victim(c, max / 8 < DENSE ? max / 8 : DENSE);
		if (i < 0 || drop(c, (size_t)i, &e) < 0)
			return;
	}
}
