/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/draft_judge.h"
#include "base/path.h"
#include "commit/draft_parts.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "diff/git2.h"
#include "diff/merge.h"
#include "diff/risk.h"
#include "host/known_text.h"
#include "plan/content.h"
#include "plan/stage.h"
#include "sys/mountinfo.h"

bool draft_is_ours(const struct draft *d, const char *path)
{
	return chosen_side(d->w->ours, d->w->theirs, path) == CHOSEN_OURS;
}

int draft_check_sides(const struct draft *d, const char *path, struct err *e)
{
	if (!d->w->ours || !d->w->theirs ||
	    chosen_side(d->w->ours, d->w->theirs, path) != CHOSEN_BOTH)
		return 0;
	return chosen_twice(path, e);
}

bool draft_is_kept(const struct draft *d, const char *path)
{
	for (char **k = d->kept; k && *k; k++)
		if (path_within(path, *k))
			return true;
	return false;
}

void draft_keep(struct draft *d, const char *path)
{
	d->kept = xrealloc(d->kept, (d->nkept + 2) * sizeof(*d->kept));
	d->kept[d->nkept++] = xstrdup(path);
	d->kept[d->nkept] = NULL;
}

void draft_conflict(struct draft *d, const struct change *c, const char *what)
{
	if (d->looking) {
		if (chosen_side(d->w->ours, d->w->theirs, c->path) == CHOSEN_THEIRS)
			draft_keep(d, c->path);
		return;
	}
	path_notes_add(&d->res->conflicts, c->path, what);
}

void draft_stuck(struct draft *d, const struct change *c, const char *what)
{
	size_t n = d->res->conflicts.n;

	draft_conflict(d, c, what);
	if (d->res->conflicts.n > n)
		d->res->conflicts.v[n].stuck = true;
}

void draft_closed(struct draft *d, const struct change *c)
{
	if (d->looking) {
		draft_conflict(d, c, "");
		return;
	}
	d->res->closed++;
	path_notes_add(&d->res->denied, c->path, TXN_WAS_CLOSED);
}

static const char *our_side(const struct change *c)
{
	return c->kind == CHANGE_DELETE ? "deleted"
	       : c->kind == CHANGE_ADD	? "made"
					: "changed";
}

bool draft_host_changed(struct draft *d, const struct change *c, const struct ident *host)
{
	return known_changed(d->known, d->a, (uint32_t)c->layer, c->rel, host);
}

bool draft_only_theirs(struct draft *d, const struct change *c, const struct plan_rec *r)
{
	struct ident base;

	return r->before.ctime >= d->t->rec.begin_ns &&
	       known_ident(d->known, r->layer, c->rel, &base) &&
	       r->after.mtime == base.mtime;
}

/* Among so many conflicts there is a text, or merging is not worth a word. */
enum { OFFER_AFTER = 20 };

struct sides {
	struct buf base, ours, theirs;
};

static void sides_free(struct sides *s)
{
	buf_free(&s->base);
	buf_free(&s->ours);
	buf_free(&s->theirs);
}

/* Is it a text that both sides have changed? What is merged has our attributes: what the host has
 * given it meanwhile must not be lost. */
static bool read_sides(struct draft *d, const struct change *c, const struct ident *host,
		       struct sides *s)
{
	uint32_t layer = (uint32_t)c->layer;

	return c->kind == CHANGE_MODIFY && c->what & CHANGE_CONTENT &&
	       S_ISREG(c->after.st_mode) && S_ISREG(host->mode) &&
	       known_attributes(d->known, layer, c->rel, host, &c->after) &&
	       known_content(d->known, layer, c->rel, &s->base) &&
	       apply_text(d->a, layer, c->rel, false, &s->ours) &&
	       apply_text(d->a, layer, c->rel, true, &s->theirs);
}

/* If both changes can stand, d->merged holds both. If nobody has asked, that somebody could. */
static bool merge_step(struct draft *d, const struct change *c, const struct ident *host)
{
	__attribute__((cleanup(sides_free))) struct sides s = { 0 };
	struct err e;

	/*
	 * In the search for the paths of --theirs nothing is merged: conflicts are only found.
	 */
	if (d->looking ||
	    (!d->w->merge && (d->res->mergeable || d->res->conflicts.n >= OFFER_AFTER)) ||
	    !read_sides(d, c, host, &s))
		return false;
	d->res->mergeable = true;
	buf_reset(&d->merged);
	return d->w->merge &&
	       merge_text(&s.base, &s.ours, &s.theirs, &d->merged, &e) == 1;
}

void draft_check_conflict(struct draft *d, const struct change *c,
			  const struct ident *host)
{
	char what[96];

	if (draft_is_ours(d, c->path))
		return;
	if (host->mode && draft_host_changed(d, c, host)) {
		if (merge_step(d, c, host)) {
			d->res->merged++;
			return;
		}
		snprintf(what, sizeof(what), "%s in t%lld, changed on the host",
			 our_side(c), (long long)d->t->rec.id);
		draft_conflict(d, c, what);
	}
	/*
	 * The host has deleted it since the command ended; or the command merged a directory
	 * with the host's, which has none any more. For a path below a hidden directory that
	 * directory answers: nobody has looked below it.
	 */
	if (c->kind == CHANGE_ADD && !(c->was_hidden && c->implied) &&
	    ((!host->mode && draft_host_changed(d, c, host)) ||
	     (S_ISDIR(c->after.st_mode) && !c->was_hidden &&
	      apply_is_copy(d->a, (uint32_t)c->layer, c->rel))))
		draft_conflict(d, c, "changed by the command, deleted on the host");
}

void draft_check_risk(struct draft *d, const struct change *c)
{
	AUTO_BUF struct buf target = BUF_INIT;
	const char *why, *rule = NULL;
	bool deny = false;

	if (S_ISLNK(c->after.st_mode)) {
		AUTO_FREE char *up = xasprintf("%s/%s", d->layers[c->layer].upper,
					       c->rel);
		char link[4096];
		ssize_t n = readlink(up, link, sizeof(link) - 1);

		if (n > 0)
			buf_add(&target, link, (size_t)n);
	}
	why = risk_of(c, target.len ? buf_str(&target) : NULL, d->t->rec.workspace);
	if (d->w->judge)
		rule = d->w->judge(d->w->judge_arg, c,
				   target.len ? buf_str(&target) : NULL, &deny);
	if (rule && deny)
		path_notes_add(&d->res->denied, c->path, rule);
	else if (why || rule)
		path_notes_add(&d->res->risks, c->path, why ? why : rule);
}
