/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/path.h"
#include "ckpt/rescan.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "ckpt/watch.h"
#include "ctl/freeze.h"
#include "sys/mountinfo.h"
#include "timeline/parts.h"
#include "timeline/take.h"

/*
 * Reads the layers of a running sandbox. As in a live migration the slow part is done
 * beforehand: everything is copied, then everything that has changed meanwhile, and only the
 * rest while all processes are stopped.
 *
 * Large layers are not walked again for that. Their directories are watched from the first
 * walk on, and for files the descriptors and mappings of the processes are looked at
 * (ckpt/ckpt.h). Events of the watches name paths, and an overlay does not always know the
 * present name of a file. So the layers are walked when all processes go on again; if anything
 * had changed that no event told, everything is stopped once more and walked.
 */

/* Small layers are walked in less time than the kernel takes to remove the watches. */
enum { WATCH_FROM = 2000 };

static bool may_watch(size_t names)
{
	const char *text = getenv("STET_CHECKPOINT_WATCH");

	return names >= (text && *text ? (size_t)strtoul(text, NULL, 10) : WATCH_FROM);
}

/*
 * Reading this many bytes again takes longer than that: files that were written just now are
 * read again.
 */
enum { WATCH_FROM_BYTES = 16 << 20 };

/* We assume that no write(2) takes longer than this, where no event tells that it has ended. */
enum { WRITING_NS = 1000000000 };

struct look {
	struct timeline *c;
	struct ck_watch *watch;
	struct ck_paths again;
	int64_t began, stopped; /* by the coarse clock, which stamps files */
	uint64_t copied;	/* bytes that the first walk has copied */
	char *written;		/* live_freeze() */
	size_t nwritten;
};

bool timeline_layer(const struct timeline *c, const char *path, uint32_t *layer,
		    const char **rel)
{
	bool found = false;
	size_t best = 0;

	for (uint32_t i = 0; i < c->layers.n; i++) {
		size_t n = strlen(c->layers.v[i].path);

		if (!path_within(path, c->layers.v[i].path) || (found && n < best))
			continue;
		found = true;
		best = n;
		*layer = i;
	}
	*rel = path + best + (best > 1);
	return found && path[best];
}

/*
 * A mapped file can change without new times, and a file that is open for writing without an
 * event.
 */
static void add_written(struct look *l)
{
	const char *rel;
	uint32_t layer;

	for (const char *p = l->written; p < l->written + l->nwritten; p += strlen(p) + 1)
		if (timeline_layer(l->c, p + 1, &layer, &rel))
			ck_paths_add(&l->again, layer, rel,
				     *p == FREEZE_MAPPED ? CK_FORCED : CK_NOTED);
}

/* Follows the events since @now was read. 1: events were lost. */
static int follow(struct look *l, bool early, struct ck_state *now, struct err *e)
{
	struct ck_scan s = { .layers = &l->c->layers,
			     .copy = true,
			     .early = early,
			     .watch = early ? l->watch : NULL };
	int r;

	if (!l->watch || !ck_watch_read(l->watch, &l->again))
		return 1;
	if (!early)
		add_written(l);
	r = ck_rescan(&s, &l->again, now, e);
	if (r == 0)
		ck_paths_free(&l->again);
	return r;
}

/* Makes the scan read again what is mapped, and what was written to since it was read. */
static void force(struct look *l, const struct ck_state *now)
{
	struct ck_paths all = l->again;

	l->again = (struct ck_paths){ 0 };
	for (size_t i = 0; i < all.n; i++) {
		const struct ck_path *p = &all.v[i];
		const struct ck_entry *en = ck_find(now, p->layer, p->rel);

		if (en && S_ISREG(en->id.mode) &&
		    (p->how == CK_FORCED || en->flags & CK_EARLY))
			ck_paths_add(&l->again, p->layer, p->rel, CK_FORCED);
	}
	ck_paths_free(&all);
}

/* Walks the layers; entries with the same times as in @now are taken from there. */
static int walk(struct look *l, struct ck_state *now, struct err *e)
{
	struct ck_state early = *now;
	struct ck_scan s = { .layers = &l->c->layers, .prev = &early, .copy = true };
	int r;

	/* The events tell who has written, unless some were lost. */
	if (!l->watch || !ck_watch_read(l->watch, &l->again))
		s.doubt = l->began - WRITING_NS;
	add_written(l);
	r = ck_scan(&s, now, e);
	ck_state_free(&early);
	if (r == 0) {
		force(l, now);
		r = ck_rescan(&s, &l->again, now, e);
	}
	ck_paths_free(&l->again);
	return r < 0 ? -1 : 0;
}

static int stop(struct look *l, struct err *e)
{
	int r;

	free(l->written);
	l->written = NULL;
	r = live_freeze(l->c->live, &l->written, &l->nwritten, e);
	l->c->frozen = r == 0;
	l->stopped = clock_ns(CLOCK_REALTIME_COARSE);
	return r;
}

static int go_on(struct look *l, int r, struct err *e)
{
	struct err ignored;

	return timeline_thaw(l->c, r < 0 ? &ignored : e) < 0 ? -1 : r;
}

/* Had anything changed before all processes were stopped that is not in @now? */
static bool has_missed(const struct look *l, const struct ck_state *now)
{
	struct ck_scan s = { .layers = &l->c->layers, .prev = now, .glance = true };
	struct ck_state seen;
	struct err ignored;
	bool missed = false;
	size_t k = 0;

	if (ck_scan(&s, &seen, &ignored) < 0)
		return false; /* it changes under our hands: that is after it went on */
	for (size_t i = 0; i < seen.n && !missed; i++) {
		const struct ck_entry *a = seen.v[i], *b = NULL;

		while (k < now->n &&
		       ck_order(now->v[k]->layer, now->v[k]->rel, a->layer, a->rel) < 0)
			k++;
		if (k < now->n &&
		    ck_order(now->v[k]->layer, now->v[k]->rel, a->layer, a->rel) == 0)
			b = now->v[k];
		/*
		 * Whiteouts are hard links of one inode: each new one moves the ctime of all.
		 */
		missed = a->id.ctime < l->stopped &&
			 (!b || (a->id.ctime != b->id.ctime &&
				 !(ck_is_whiteout(a) && ck_is_whiteout(b))));
	}
	ck_state_free(&seen);
	return missed;
}

/* The layers have grown: watch them from here on, and walk once more. */
static int watch_late(struct look *l, struct ck_state *now, struct err *e)
{
	struct ck_state first = *now;
	struct ck_scan s = { .layers = &l->c->layers,
			     .prev = &first,
			     .copy = true,
			     .early = true,
			     .doubt = l->began - WRITING_NS,
			     .watch = ck_watch_new() };
	int r;

	l->watch = s.watch;
	if (!l->watch)
		return 0;
	r = ck_scan(&s, now, e);
	ck_state_free(&first);
	return r;
}

static int look_live(struct look *l, bool stay, struct ck_state *now, struct err *e)
{
	bool told = false;
	bool late = !l->watch && (may_watch(now->n) || l->copied >= WATCH_FROM_BYTES);
	int r = late ? watch_late(l, now, e) : 0;

	if (r == 0)
		r = follow(l, true, now, e);

	if (r >= 0)
		r = stop(l, e);
	if (r == 0) {
		r = stay ? 1 : follow(l, false, now, e);
		told = r == 0;
		if (r > 0)
			r = walk(l, now, e);
	}
	if (!stay)
		r = go_on(l, r, e);
	if (r == 0 && told && has_missed(l, now)) {
		r = stop(l, e);
		if (r == 0)
			r = walk(l, now, e);
		r = go_on(l, r, e);
	}
	if (r < 0)
		ck_state_free(now);
	return r;
}

int timeline_look(struct timeline *c, bool stay, struct ck_state *last,
		  struct ck_state *now, struct err *e)
{
	struct ck_scan s = {
		.layers = &c->layers, .prev = last, .copy = true, .early = c->live
	};
	struct look l = { .c = c, .began = clock_ns(CLOCK_REALTIME_COARSE) };
	int r;

	if (timeline_state(c, timeline_last(c), last, e) < 0)
		return -1;
	if (c->live && may_watch(last->n))
		l.watch = s.watch = ck_watch_new();
	r = ck_scan(&s, now, e);
	l.copied = s.bytes;
	if (r == 0 && c->live && (stay || timeline_differ(last, now)))
		r = look_live(&l, stay, now, e);
	if (r < 0)
		ck_state_free(last);
	ck_watch_free(l.watch);
	ck_paths_free(&l.again);
	free(l.written);
	return r;
}
