/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "commit/undo_list.h"
#include "commit/undo_parts.h"
#include "layer/meta.h"
#include "plan/checks.h"
#include "plan/shared.h"
#include "plan/stage.h"
#include "txn/chosen.h"

/* The list of an undo or redo that is not just that of what it takes back: chosen paths, sides that
 * the user has decided for, files that were touched, places that are taken. */

struct subset {
	const struct commit_wish *w;
	const struct deed *d;
	struct operation *o;
	struct plan_writer *out;
	uint64_t n;
	struct buf dirs; /* that hold chosen paths: layer and path, one after the other */
	struct buf from, to; /* extended attributes of the step at hand */
};

static void dir_key(struct buf *key, uint32_t layer, const char *rel, size_t len)
{
	buf_reset(key);
	buf_addf(key, "%c%u/", '\0', layer);
	buf_add(key, rel, len);
	buf_addc(key, '\0');
}

static void note_parent(struct subset *s, const struct plan_rec *r)
{
	const char *slash = strrchr(r->rel, '/');
	AUTO_BUF struct buf key = BUF_INIT;

	dir_key(&key, r->layer, slash ? r->rel : ".",
		slash ? (size_t)(slash - r->rel) : 1);
	if (!memmem(buf_str(&s->dirs), s->dirs.len, buf_str(&key), key.len))
		buf_add(&s->dirs, buf_str(&key), key.len);
}

/*
 * A directory that the transaction has changed since the commit: on the host that is undone; in
 * the layer it stays as it is, whatever is put back into it.
 */
static int keep_dir(struct subset *s, struct plan_rec *r, struct err *e)
{
	struct plan_rec own = { .kind = PLAN_DIR,
				.flags = PLAN_IS_DIR | PLAN_ASIDE,
				.layer = r->layer,
				.rel = r->rel };
	struct ident host;

	r->flags &= ~(unsigned)PLAN_PARK;
	if (apply_look(s->o->apply, r->layer, r->rel, &host, &own.after, e) < 0 ||
	    plan_add_as(s->out, r, r->serial, e) < 0)
		return -1;
	return plan_add_as(s->out, &own, r->serial, e);
}

/* Places in old/ go by the number that the step had in the commit. */
static int keep(struct subset *s, struct plan_rec *r, bool taken, struct err *e)
{
	return taken && r->kind == PLAN_DIR ? keep_dir(s, r, e)
					    : plan_add_as(s->out, r, r->serial, e);
}

/* Has the host made of it by itself what the step would: of its extended attributes? */
static int has_attributes(const struct operation *o, const struct plan_rec *r, bool redo,
			  struct err *e)
{
	const char *to = redo ? r->xafter : r->xbefore;
	uint32_t n = redo ? r->nxafter : r->nxbefore;
	AUTO_BUF struct buf now = BUF_INIT;

	if (!(r->flags & PLAN_XATTR))
		return 0;
	if (apply_pack(o->apply, r->layer, r->rel, true, &now, e) < 0)
		return -1;
	return now.len == n && memcmp(buf_str(&now), to, n) == 0;
}

/* And of its mode and owner: then that is not for this operation's opposite to take back. */
static bool take_over(const struct plan_rec *r, const struct ident *now,
		      struct ident *from, const struct ident *to)
{
	bool any = false;

	if (r->flags & PLAN_TIMES)
		return false;
	if (now->mode != from->mode && now->mode == to->mode) {
		from->mode = now->mode;
		any = true;
	}
	if ((now->uid != from->uid || now->gid != from->gid) && now->uid == to->uid &&
	    now->gid == to->gid) {
		from->uid = now->uid;
		from->gid = now->gid;
		any = true;
	}
	return any;
}

/*
 * The host has changed what a directory of its own holds since: that must stay visible, and be
 * there again if this operation is taken back half way. 1: it has, or attributes of it; 0: it has
 * not; -1: *e is set.
 */
static int freshen_dir(const struct operation *o, bool redo, struct plan_rec *r,
		       struct err *e)
{
	struct ident *from = redo ? &r->before : &r->after;
	struct ident *to = redo ? &r->after : &r->before;
	struct ident now, up;
	bool any;
	int x;

	if (r->kind != PLAN_DIR || !r->before.mode || r->flags & PLAN_ASIDE)
		return 0;
	if (apply_look(o->apply, r->layer, r->rel, &now, &up, e) < 0)
		return -1;
	if (!ident_is(&now, &r->before))
		return 0;
	any = take_over(r, &now, from, to);
	x = has_attributes(o, r, redo, e);
	if (x > 0) {
		r->flags &= ~(unsigned)PLAN_XATTR;
		r->nxbefore = r->nxafter = 0;
		any = true;
	}
	if (now.mtime != from->mtime) {
		from->mtime = now.mtime;
		if (now.mtime > to->mtime)
			to->mtime = now.mtime;
		any = true;
	}
	return x < 0 ? -1 : any;
}

int undo_is_dir_changed(struct operation *o, bool redo, const struct plan_rec *r,
			struct err *e)
{
	struct plan_rec copy = *r;

	return freshen_dir(o, redo, &copy, e);
}

/* The directory of a chosen path stays as the commit left it, its mtime included. */
static int keep_parent(struct subset *s, const struct plan_rec *r, bool taken,
		       struct err *e)
{
	AUTO_BUF struct buf key = BUF_INIT;
	struct plan_rec copy = *r;

	dir_key(&key, r->layer, r->rel, strlen(r->rel));
	if (!r->before.mode ||
	    !memmem(buf_str(&s->dirs), s->dirs.len, buf_str(&key), key.len))
		return 0;
	copy.before.mtime = r->after.mtime;
	if (!(r->flags & PLAN_TIMES)) {
		copy.before.mode = r->after.mode;
		copy.before.uid = r->after.uid;
		copy.before.gid = r->after.gid;
	}
	copy.flags &= ~(unsigned)PLAN_XATTR;
	copy.nxbefore = copy.nxafter = 0;
	return keep(s, &copy, taken, e);
}

/* Is the host to win here? Only where there is something to win: 1. -1: *e is set. */
static int is_theirs(struct subset *s, const struct plan_rec *r, const char *path,
		     struct err *e)
{
	enum chosen_side side = chosen_side(s->w->ours, s->w->theirs, path);

	if (side == CHOSEN_BOTH)
		return chosen_twice(path, e);
	if (side != CHOSEN_THEIRS || apply_check(s->o->apply, r, s->d->redo, e) == 0)
		return 0;
	return e->kind == ERR_CONFLICT ? 1 : -1;
}

/*
 * Does the host have something else there than a step expects? 1: what it has, and what the upper
 * has; 0: no, or there is no directory to do it in, which is told when it is tried; -1: *e is set.
 */
static int find_obstacle(const struct subset *s, const struct plan_rec *r,
			 struct ident *now, struct ident *up, struct err *e)
{
	struct apply *a = s->o->apply;

	if (apply_check(a, r, s->d->redo, e) == 0)
		return 0;
	if (e->kind != ERR_CONFLICT)
		return -1;
	if (apply_lost_dir(a))
		return 0;
	return apply_look(a, r->layer, r->rel, now, up, e) < 0 ? -1 : 1;
}

/* Attributes: those that the step would set, on what is there now. */
static void go_on_meta(struct plan_rec *r, bool redo, const struct ident *now)
{
	struct ident to = redo ? r->after : r->before;
	struct ident set = *now;

	set.mode = to.mode;
	set.uid = to.uid;
	set.gid = to.gid;
	r->before = redo ? *now : set;
	r->after = redo ? set : *now;
}

/* Extended attributes, too: what the host has given to it comes back with the opposite. */
static int go_on_xattrs(struct subset *s, struct plan_rec *r, bool redo, struct err *e)
{
	if (!(r->flags & PLAN_XATTR))
		return 0;
	buf_reset(&s->from);
	buf_reset(&s->to);
	if (apply_pack(s->o->apply, r->layer, r->rel, true, &s->from, e) < 0)
		return -1;
	if (redo)
		meta_turn(&s->from, r->xbefore, r->nxbefore, r->xafter, r->nxafter,
			  &s->to);
	else
		meta_turn(&s->from, r->xafter, r->nxafter, r->xbefore, r->nxbefore,
			  &s->to);
	r->xbefore = buf_str(redo ? &s->from : &s->to);
	r->nxbefore = (uint32_t)(redo ? s->from.len : s->to.len);
	r->xafter = buf_str(redo ? &s->to : &s->from);
	r->nxafter = (uint32_t)(redo ? s->to.len : s->from.len);
	return 0;
}

static bool is_link(const struct plan_rec *r)
{
	return (r->kind == PLAN_LINK && !(r->flags & PLAN_STAGED)) ||
	       r->flags & PLAN_LINKED;
}

/* Is the file that a link is to be another name of what it was, or (@now) what holds the same? */
static bool look_at_target(const struct subset *s, const struct plan_rec *r,
			   struct ident *now)
{
	struct ident up;
	struct err e;

	if (apply_look(s->o->apply, r->layer, r->link, now, &up, &e) < 0 || !now->mode)
		return false;
	return ident_is(now, &r->after) ||
	       after_commit_is(s->d->left, r->layer, r->link, now);
}

static bool has_target(const struct subset *s, const struct plan_rec *r)
{
	struct ident now;

	return look_at_target(s, r, &now) && ident_is(&now, &r->after);
}

/* There is nothing to link to: the command's own will do. */
static void use_own(struct plan_rec *r, const struct ident *up)
{
	if (r->kind == PLAN_LINK)
		r->kind = PLAN_CREATE;
	r->flags &= ~(unsigned)PLAN_LINKED;
	r->link = NULL;
	r->after = *up;
}

/*
 * The user wants a step done, whatever the host has there: if that is something else than the
 * step expects, the step becomes one that exchanges it, so that it is kept, and comes back if
 * this operation is taken back. 1; 0: there is nothing to do; -1: *e is set.
 */
static int go_on(struct subset *s, struct plan_rec *r, struct err *e)
{
	bool redo = s->d->redo;
	struct ident now, up;
	int x = find_obstacle(s, r, &now, &up, e);

	if (x <= 0)
		return x < 0 ? -1 : 1;
	if (r->kind == PLAN_DIR && !ident_is(&now, &r->before))
		return 0;
	if (r->kind == PLAN_META || r->kind == PLAN_DIR) {
		if ((now.mode ^ r->before.mode) & S_IFMT)
			return 0;
		go_on_meta(r, redo, &now);
		return go_on_xattrs(s, r, redo, e) < 0 ? -1 : 1;
	}
	if (redo) {
		if (is_link(r) && !has_target(s, r))
			use_own(r, &up);
		if (r->kind == PLAN_CREATE && now.mode)
			r->kind = PLAN_REPLACE;
		r->before = now;
		/* A directory is there already, whoever made it. */
		if (r->kind == PLAN_MKDIR && S_ISDIR(now.mode))
			r->before = (struct ident){ 0 };
		return 1;
	}
	if (r->kind == PLAN_CREATE && !now.mode)
		return 0;
	r->after = now;
	return 1;
}

/*
 * A link: on the way there, the file that it is to be a name of may have been saved as it was;
 * on the way back, an undo of a part may have given that its attributes back, which this name
 * has, too.
 */
static bool accept_link(const struct subset *s, struct plan_rec *r,
			const struct ident *now)
{
	struct ident target;

	if (s->d->redo) {
		if (!look_at_target(s, r, &target) || ident_is(&target, &r->after))
			return false;
		r->after = target;
		return true;
	}
	if (!ident_is(now, &r->after) || now->size != r->after.size ||
	    now->mtime != r->after.mtime)
		return false;
	r->after = *now;
	return true;
}

/* Somebody has touched the file, or saved it as it was: the step is about what is there now. */
static int accept_touched(const struct subset *s, struct plan_rec *r, struct err *e)
{
	struct ident now, up;
	int x = find_obstacle(s, r, &now, &up, e);
	bool same;

	if (x <= 0)
		return x;
	same = after_commit_is(s->d->left, r->layer, r->rel, &now);
	if (is_link(r) && accept_link(s, r, &now))
		r->flags |= PLAN_TOUCHED;
	if (!same)
		return 0;
	r->flags |= PLAN_TOUCHED;
	if (r->kind == PLAN_META)
		go_on_meta(r, s->d->redo, &now);
	else if (s->d->redo)
		r->before = now;
	else
		r->after = now;
	return 0;
}

int undo_is_gone_already(struct operation *o, const struct plan_rec *r, struct err *e)
{
	struct ident now, up;

	if (r->kind != PLAN_DELETE || r->after.mode || !r->before.mode)
		return 0;
	if (apply_look(o->apply, r->layer, r->rel, &now, &up, e) < 0)
		return -1;
	return !now.mode && !apply_lost_dir(o->apply);
}

char *undo_path(const struct operation *o, const struct plan_rec *r)
{
	const char *host = o->layers[r->layer].host;

	return xasprintf("%s/%s", strcmp(host, "/") == 0 ? "" : host, r->rel);
}

/*
 * The replaced object took the place of the command's own in the upper. If everything but this
 * step is taken back, the transaction is pending again, and would seem to have made that
 * object.
 */
static bool is_kept_in_upper(const struct subset *s, const struct plan_rec *r)
{
	return !s->d->redo && !s->w->paths && r->kind == PLAN_REPLACE && r->before.mode &&
	       !(r->flags & (PLAN_PARK | PLAN_CROSS)) && !plan_is_apart(r);
}

/*
 * The transaction has gone on at the place in its layer where what was committed would go again:
 * its newer version stays, and the committed one is kept for a redo. 1; 0: nothing is in the way;
 * -1: *e is set. A redo takes it from where its undo has put it.
 */
static int put_aside(const struct subset *s, struct plan_rec *r, struct err *e)
{
	int taken;

	if (s->d->redo)
		return 0;
	r->flags &= ~(unsigned)PLAN_ASIDE;
	taken = apply_is_taken(s->o->apply, r, e);
	if (taken > 0 && r->kind != PLAN_DIR)
		r->flags |= PLAN_ASIDE;
	return taken;
}

static int keep_chosen(void *arg, const struct plan_rec *r, struct err *e)
{
	struct subset *s = arg;
	AUTO_FREE char *path = undo_path(s->o, r);
	struct plan_rec copy = *r;
	int theirs, taken, gone, stands = 1;

	if (s->d->standing)
		stands = standing_step(s->d->standing, &copy, e);
	if (stands <= 0)
		return stands;
	taken = put_aside(s, &copy, e);
	if (taken < 0)
		return -1;
	theirs = is_theirs(s, &copy, path, e);
	if (theirs < 0)
		return -1;
	if (theirs && is_kept_in_upper(s, r)) {
		copy.kind = PLAN_LEAVE;
		copy.flags &= ~(unsigned)PLAN_FORCE;
		return plan_add_as(s->out, &copy, r->serial, e);
	}
	if (freshen_dir(s->o, s->d->redo, &copy, e) < 0)
		return -1;
	if (theirs || (s->w->paths && !chosen_has(s->w->paths, path)))
		return r->kind == PLAN_DIR ? keep_parent(s, &copy, taken, e) : 0;
	/* A decision of the user for the commit does not count for its undo. */
	if (copy.flags & PLAN_FORCE)
		copy.flags |= PLAN_DECIDED;
	copy.flags &= ~(unsigned)(PLAN_FORCE | PLAN_TOUCHED);
	gone = s->d->redo ? undo_is_gone_already(s->o, &copy, e) : 0;
	if (gone < 0)
		return -1;
	if (gone) {
		copy.flags |= PLAN_TOUCHED;
		copy.before = (struct ident){ 0 };
	} else if (chosen_side(s->w->ours, s->w->theirs, path) == CHOSEN_OURS) {
		int goes = go_on(s, &copy, e);

		if (goes <= 0)
			return goes;
		copy.flags |= PLAN_FORCE;
	} else if (accept_touched(s, &copy, e) < 0) {
		return -1;
	}
	s->n++;
	note_parent(s, r);
	return keep(s, &copy, taken, e);
}

int undo_note_shared(void *arg, const struct plan_rec *r, struct err *e)
{
	(void)e;
	apply_note_shared(arg, r, false);
	return 0;
}

int redo_note_shared(void *arg, const struct plan_rec *r, struct err *e)
{
	(void)e;
	apply_note_shared(arg, r, true);
	return 0;
}

int undo_list_make(struct operation *o, const struct commit_wish *w, const struct deed *d,
		   const char *from, const char *name, struct err *e)
{
	struct subset s = { .w = w, .d = d, .o = o };
	struct plan *p = NULL;
	uint64_t n;
	int r;

	if (plan_open(o->dir, from, &p, e) < 0)
		return -1;
	r = plan_create(o->dir, name, &s.out, e);
	if (r == 0)
		r = plan_each(p, false, d->redo ? redo_note_shared : undo_note_shared,
			      o->apply, e);
	if (r == 0)
		r = plan_each(p, false, keep_chosen, &s, e);
	if (r == 0)
		r = plan_finish(s.out, &n, e);
	else
		plan_abandon(s.out);
	plan_close(p);
	buf_free(&s.dirs);
	buf_free(&s.from);
	buf_free(&s.to);
	return r;
}
