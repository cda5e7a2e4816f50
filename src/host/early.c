/* SPDX-License-Identifier: Apache-2.0 */
#include "host/early.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "plan/plan.h"

/* So few are noted whole while one waits. */
enum { FEW = 100, LATE_MS = 100, GLANCES = 32 };

struct early {
	int dir; /* negative: there is nothing to note in */
	struct plan_writer *w;
	struct plan_rec few[FEW]; /* until there are more */
	size_t n, seen;
	bool failed;
	int64_t until;
	unsigned glances;
};

struct early *early_begin(const struct txn_record *r)
{
	struct early *w = xcalloc(1, sizeof(*w));

	w->dir = open(r->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return w;
}

static void put(struct early *w, const struct plan_rec *r)
{
	struct plan_rec copy = *r;
	struct err e;

	w->failed = w->failed || plan_add(w->w, &copy, &e) < 0;
}

static void start(struct early *w)
{
	struct err e;

	unlinkat(w->dir, EARLY, 0);
	w->failed = plan_create(w->dir, EARLY, &w->w, &e) < 0;
	for (size_t i = 0; i < w->n; i++) {
		put(w, &w->few[i]);
		plan_rec_free(&w->few[i]);
	}
	w->n = 0;
}

void early_note(struct early *w, const struct change *c)
{
	struct plan_rec r = { .kind = PLAN_BASE,
			      .flags = PLAN_LATE,
			      .layer = (uint32_t)c->layer,
			      .rel = c->rel };

	if (w->dir < 0 || w->failed)
		return;
	if (++w->seen == FEW + 1)
		start(w);
	if (!c->before.st_mode || !c->after.st_mode || w->failed)
		return;
	ident_from(&c->before, &r.before);
	if (w->seen > FEW)
		put(w, &r);
	else
		plan_rec_copy(&w->few[w->n++], &r);
}

bool early_is_late(struct early *w)
{
	if (w->dir < 0 || w->failed)
		return true;
	if (w->glances++ % GLANCES)
		return false;
	if (!w->until)
		w->until = clock_ms(CLOCK_MONOTONIC) + LATE_MS;
	return clock_ms(CLOCK_MONOTONIC) > w->until;
}

void early_end(struct early *w, bool complete)
{
	struct err e;

	for (size_t i = 0; i < w->n; i++)
		plan_rec_free(&w->few[i]);
	if (w->w && complete && !w->failed)
		plan_finish_lazily(w->w, &e);
	else if (w->w)
		plan_abandon(w->w);
	cleanup_close(&w->dir);
	free(w);
}
