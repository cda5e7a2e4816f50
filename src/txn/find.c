/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "ctl/idle.h"
#include "ctl/live.h"
#include "journal/txn_rows.h"
#include "snap/foreign.h"
#include "snap/store.h"
#include "sys/mountinfo.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/marks.h"
#include "txn/parts.h"

const char *txn_look_name(enum txn_look l)
{
	static const char *const names[] = {
		[TXN_RUNNING] = "running",   [TXN_INTERRUPTED] = "interrupted",
		[TXN_PENDING] = "pending",   [TXN_GONE] = "rolled back",
		[TXN_EMPTY] = "pruned",	     [TXN_KEPT] = "committed",
		[TXN_HALFWAY] = "unfinished"
	};

	return names[l];
}

enum txn_look txn_look(const struct txn_record *r)
{
	if (r->state == TXN_FROZEN)
		return TXN_PENDING;
	if (r->state == TXN_ROLLED_BACK)
		return TXN_GONE;
	if (r->state == TXN_PRUNED)
		return TXN_EMPTY;
	if (r->state == TXN_COMMITTED)
		return TXN_KEPT;
	if (r->state == TXN_COMMITTING || r->state == TXN_UNDOING)
		return TXN_HALFWAY;
	return lock_is_held(r->dir) ? TXN_RUNNING : TXN_INTERRUPTED;
}

/* "3" or "t3" -> 3; anything else 0. */
static int64_t parse_number(const char *ref)
{
	long long v;
	char *end;

	if (*ref == 't')
		ref++;
	if (*ref < '0' || *ref > '9')
		return 0;
	errno = 0;
	v = strtoll(ref, &end, 10);
	return errno || *end ? 0 : v;
}

struct search {
	const char *cwd;
	struct txn_record best;
	bool found;
	bool taken; /* the directory is one that it has taken away */
};

static bool undecided(const struct txn_record *r)
{
	return r->state == TXN_FROZEN || r->state == TXN_ACTIVE;
}

/* The nearest workspace, then one that waits for a decision; else the newer, seen first. */
static bool better(const struct txn_record *r, const struct txn_record *best)
{
	size_t a = strlen(r->workspace), b = strlen(best->workspace);

	return a != b ? a > b : undecided(r) && !undecided(best);
}

bool txn_has_taken(const struct txn_record *r, const char *cwd)
{
	for (size_t i = 0; i < r->nlayers; i++)
		if (r->layers[i].dir && path_within(cwd, r->layers[i].dir))
			return true;
	return false;
}

static int consider(void *arg, struct txn_record *r, struct err *e)
{
	struct search *s = arg;
	bool taken = txn_has_taken(r, s->cwd);

	(void)e;
	if (s->taken || (!taken && !path_within(s->cwd, r->workspace)))
		return 0;
	if (s->found && !taken && !better(r, &s->best))
		return 0;
	s->taken = taken;
	if (s->found)
		txn_record_free(&s->best);
	s->best = *r;
	s->found = true;
	*r = (struct txn_record){ 0 };
	return 0;
}

/* May a transaction have taken it away? Then it lies in a store. */
static bool may_be_taken(const struct home *h, const char *cwd)
{
	return path_within(cwd, h->dir) || strstr(cwd, "/.stet-");
}

static int newest(struct home *h, const char *cwd, struct txn *t, struct err *e)
{
	struct search s = { .cwd = cwd };
	bool whole = may_be_taken(h, cwd); /* only then do their layers matter */
	int64_t id;

	if ((whole ? journal_txn_each(h->journal, JOURNAL_KEPT, consider, &s, e)
		   : journal_txn_glance(h->journal, consider, &s, e)) < 0) {
		if (s.found)
			txn_record_free(&s.best);
		return -1;
	}
	if (!s.found) {
		err_set(e, ERR_USAGE, "no transaction in %s", cwd);
		return err_hint(
			e,
			"`stet list` shows all of them, `stet run -- COMMAND` makes one");
	}
	if (whole) {
		t->rec = s.best;
		return 0;
	}
	id = s.best.id;
	txn_record_free(&s.best);
	return journal_txn_get(h->journal, id, &t->rec, e);
}

int txn_find(struct home *h, const char *ref, const char *cwd, struct txn *t,
	     struct err *e)
{
	int64_t id;

	*t = (struct txn){ .lock = -1 };
	if (!ref)
		return newest(h, cwd, t, e);
	id = parse_number(ref);
	if (id > 0)
		return journal_txn_get(h->journal, id, &t->rec, e);
	return journal_txn_by_name(h->journal, ref, &t->rec, e);
}

/* What was asked of a sandbox that runs: once. */
struct live_look {
	bool asked;
	uint64_t untouched;
};

bool layer_away(const char *upper)
{
	struct stat st;

	return lstat(upper, &st) < 0 && errno == ENOENT;
}

/* Unmounted in the middle of a run; the sandbox, which has it still, can tell what is in it. */
static bool is_unused_yet(const struct txn_record *r, size_t layer,
			  struct live_look *look)
{
	/* Before it has a number, it waits for us: nothing has run in it. */
	if (r->state != TXN_ACTIVE || !r->id || layer >= IDLE_LAYERS_MAX)
		return false;
	if (!look->asked)
		look->untouched = live_untouched(r->dir);
	look->asked = true;
	return look->untouched >> layer & 1;
}

/* Of the recorded paths, those that begin with @mark, without it ('/': is part of it), into @at.
 * Returns where the next list begins. */
static const char **marked(const struct txn_record *r, char mark, const char **at)
{
	for (char **p = r->hidden; p && *p; p++)
		if (**p == mark)
			*at++ = *p + (mark != '/');
	*at++ = NULL;
	return at;
}

/*
 * One piece of memory, freed by one free(): the array, three lists of paths (stores of ours, what
 * was hidden, what was read-only), then the names of the uppers.
 */
struct change_layer *txn_layers(const struct txn_record *r, size_t *n)
{
	size_t bytes = 0, npaths = 0, k = 0;
	const char **never, **hidden, **closed;
	struct live_look live = { 0 };
	struct change_layer *v;
	char *names;

	while (r->hidden && r->hidden[npaths])
		npaths++;
	for (size_t i = 0; i < r->nlayers; i++)
		bytes += strlen(r->layers[i].dir) + sizeof("/up");
	v = xmalloc(r->nlayers * sizeof(*v) + (npaths + 3) * sizeof(*never) + bytes);
	never = (const char **)(v + r->nlayers);
	hidden = marked(r, '!', never);
	closed = marked(r, '/', hidden);
	names = (char *)marked(r, '=', closed);
	for (size_t i = 0; i < r->nlayers; i++) {
		const struct layer_record *l = &r->layers[i];

		if (l->kind != LAYER_OVERLAY)
			continue;
		v[k++] = (struct change_layer){ .host = l->host,
						.upper = names,
						.lax_owner = l->lax_owner,
						.uid = geteuid(),
						.gid = getegid(),
						.never = never,
						.hidden = hidden,
						.closed = closed };
		names = stpcpy(stpcpy(names, l->dir), "/up") + 1;
		v[k - 1].copied_ns = l->lax_owner ? layer_adopted_ns(l->dir) : 0;
		v[k - 1].away = l->idle || layer_away(v[k - 1].upper);
		v[k - 1].untouched = l->idle ||
				     (v[k - 1].away && (untouched_was(r, k - 1) ||
							is_unused_yet(r, i, &live)));
	}
	*n = k;
	return v;
}

int layer_lost(const struct txn_record *r, const char *host, const char *up,
	       struct err *e)
{
	err_set(e, ERR_CORRUPT, "t%lld has lost its layer %s", (long long)r->id, up);
	if (host && !path_within(up, r->dir))
		err_hint(e, "it was on the filesystem of %s: mount that again", host);
	return -1;
}
