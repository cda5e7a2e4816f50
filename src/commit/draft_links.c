/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/draft_links.h"
#include "commit/draft_parts.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "plan/holes.h"
#include "plan/stage.h"

/*
 * Steps at names of inodes that have several, on one side or the other. What such a step is
 * depends on the other names, so they are kept until the walk is over.
 *
 * Three rounds, in an order in which no step changes what a later one expects: names that get
 * something new; then attributes, which all names of the host's inode have in common; then further
 * names of what the host has by then.
 */

/* A name whose host inode stays: others of the same inode inside become links to it. */
static const struct hardlink *anchor_of(const struct draft *d, const struct plan_rec *r)
{
	const struct hardlink *t = hardlinks_find(&d->same, r->layer, r->after.ino);

	return t ? t : hardlinks_find(&d->dressed, r->layer, r->after.ino);
}

/* The anchor of a name that the host has as another inode (or not at all), or NULL. */
static const struct hardlink *to_link(const struct draft *d, const struct plan_rec *r)
{
	const struct hardlink *t = r->after.nlink > 1 ? anchor_of(d, r) : NULL;

	return t && t->rec.before.ino != r->before.ino ? t : NULL;
}

/* Does a name of this inode stay in the upper, because it was not chosen? */
static bool stays_behind(const struct draft *d, const struct plan_rec *r)
{
	if ((!d->w->paths && !d->kept) || !S_ISREG(r->after.mode))
		return false;
	return hardlinks_count(&d->several, r->layer, r->after.ino) +
		       hardlinks_count(&d->inner, r->layer, r->after.ino) <
	       r->after.nlink;
}

static bool same_attributes(const struct plan_rec *a, const struct plan_rec *b)
{
	return a->after.mode == b->after.mode && a->after.uid == b->after.uid &&
	       a->after.gid == b->after.gid && a->after.mtime == b->after.mtime &&
	       !((a->flags ^ b->flags) & PLAN_XATTR) && a->nxafter == b->nxafter &&
	       (!a->nxafter || memcmp(a->xafter, b->xafter, a->nxafter) == 0);
}

/*
 * Two names of one host inode with other attributes each: the command saw two files, and one
 * inode cannot have both. @hosts: the first of each, by the host's inode.
 */
static bool contradicts(struct hardlinks *hosts, const struct plan_rec *r)
{
	const struct hardlink *t = hardlinks_find(hosts, r->layer, r->before.ino);
	struct plan_rec by_host = *r;

	if (t)
		return !same_attributes(&t->rec, r);
	by_host.after.ino = r->before.ino;
	hardlinks_add(hosts, &by_host);
	return false;
}

/* A name is moved in a directory that did not expect that. */
static int touch_dir(struct draft *d, const struct plan_rec *r, struct err *e)
{
	const char *slash = strrchr(r->rel, '/');
	AUTO_FREE char *dir = slash ? xstrndup(r->rel, (size_t)(slash - r->rel))
				    : xstrdup(".");

	return draft_later_times(d, r->layer, dir, true, e);
}

/* The second name becomes a file of its own, with the present content. */
static int split(struct draft *d, struct plan_rec *r, struct err *e)
{
	struct ident host;

	r->kind = PLAN_REPLACE;
	r->flags &= ~(unsigned)PLAN_XATTR;
	r->nxbefore = r->nxafter = 0;
	return apply_look(d->a, r->layer, r->rel, &host, &r->after, e) < 0
		       ? -1
		       : touch_dir(d, r, e);
}

static int settle_attributes(struct draft *d, struct err *e)
{
	struct hardlinks hosts = { 0 };
	int x = 0;

	for (size_t i = 0; i < d->several.n && x == 0; i++) {
		struct plan_rec *r = &d->several.v[i].rec;

		if (r->kind != PLAN_META)
			continue;
		if (contradicts(&hosts, r))
			x = split(d, r, e);
		else if (r->after.nlink > 1)
			hardlinks_add(&d->dressed, r);
	}
	hardlinks_free(&hosts);
	return x;
}

/* Will nothing come of it? Then the layers stay as they are. */
static bool is_vain(const struct draft *d)
{
	const struct commit_result *res = d->res;

	return d->w->dry_run || res->conflicts.n || res->denied.n ||
	       (res->risks.n && !d->w->accept_risky);
}

/* The staged object moves to the host; with an inode of its own, if others stay here. */
static int move(struct draft *d, struct plan_rec *r, struct err *e)
{
	if (!is_vain(d) && ((r->kind == PLAN_REPLACE && apply_holes(d->a, r, e) < 0) ||
			    (stays_behind(d, r) && apply_unshare(d->a, r, e) < 0)))
		return -1;
	return draft_add(d, r, e);
}

/* The identity of the anchor's inode when its own step is done. */
static int as_it_will_be(struct draft *d, const struct hardlink *anchor, struct ident *id,
			 struct err *e)
{
	const struct plan_rec *r = &anchor->rec;
	struct ident up;

	if (apply_look(d->a, r->layer, r->rel, id, &up, e) < 0)
		return -1;
	if (r->kind == PLAN_META) {
		id->mode = r->after.mode;
		id->uid = r->after.uid;
		id->gid = r->after.gid;
		id->mtime = r->after.mtime;
	}
	id->nlink++;
	return 0;
}

static int link_to(struct draft *d, const struct plan_rec *r,
		   const struct hardlink *anchor, struct err *e)
{
	struct plan_rec s = { .kind = r->before.mode ? PLAN_REPLACE : PLAN_LINK,
			      .layer = r->layer,
			      .flags = r->flags & PLAN_FORCE,
			      .rel = r->rel,
			      .link = anchor->rec.rel,
			      .before = r->before };

	if (as_it_will_be(d, anchor, &s.after, e) < 0)
		return -1;
	if (s.kind == PLAN_REPLACE)
		s.flags |= PLAN_LINKED;
	if (r->kind != PLAN_REPLACE && r->kind != PLAN_CREATE && touch_dir(d, r, e) < 0)
		return -1;
	return draft_add(d, &s, e);
}

static int first_round(struct draft *d, struct err *e)
{
	for (size_t i = 0; i < d->several.n; i++) {
		struct plan_rec *r = &d->several.v[i].rec;

		if (r->kind == PLAN_REPLACE && !to_link(d, r) && move(d, r, e) < 0)
			return -1;
	}
	return 0;
}

static int second_round(struct draft *d, struct err *e)
{
	for (size_t i = 0; i < d->several.n; i++) {
		struct plan_rec *r = &d->several.v[i].rec;

		if (r->kind == PLAN_META && !to_link(d, r) && draft_add(d, r, e) < 0)
			return -1;
	}
	return 0;
}

static int third_round(struct draft *d, struct err *e)
{
	for (size_t i = 0; i < d->several.n; i++) {
		struct plan_rec *r = &d->several.v[i].rec;
		const struct hardlink *anchor = to_link(d, r);

		if (anchor ? link_to(d, r, anchor, e) < 0
			   : r->kind == PLAN_CREATE && move(d, r, e) < 0)
			return -1;
	}
	return 0;
}

/* In a new directory a name of a host inode that stays arrives as a copy: a link instead. */
static int link_inner(struct draft *d, struct err *e)
{
	for (size_t i = 0; i < d->inner.n; i++) {
		struct plan_rec r = d->inner.v[i].rec;
		const struct hardlink *anchor = anchor_of(d, &r);
		AUTO_FREE char *dir = xstrdup(r.rel);
		struct plan_rec parent = { .layer = r.layer, .flags = PLAN_IS_DIR };
		struct ident none;

		r.kind = PLAN_LINK;
		r.flags = PLAN_STAGED;
		r.before = (struct ident){ 0 };
		if (!anchor && !is_vain(d) && stays_behind(d, &r) &&
		    apply_unshare(d->a, &r, e) < 0)
			return -1;
		if (!anchor)
			continue;
		r.link = anchor->rec.rel;
		*strrchr(dir, '/') = '\0';
		if (draft_add(d, &r, e) < 0 ||
		    apply_look(d->a, r.layer, dir, &none, &parent.after, e) < 0)
			return -1;
		draft_later(d, dir, &parent, true);
	}
	return 0;
}

int draft_links(struct draft *d, struct err *e)
{
	int r = settle_attributes(d, e);

	if (r == 0)
		r = first_round(d, e);
	if (r == 0)
		r = second_round(d, e);
	if (r == 0)
		r = third_round(d, e);
	return r == 0 ? link_inner(d, e) : r;
}
