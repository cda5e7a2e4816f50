/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"
#include "commit/draft_judge.h"
#include "commit/draft_links.h"
#include "commit/draft_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "diff/walk.h"
#include "plan/holes.h"
#include "plan/stage.h"
#include "sys/fs.h"
#include "sys/mountinfo.h"

static void count(struct draft *d, const struct change *c, bool replaces)
{
	if (c->kind == CHANGE_MODIFY && !(c->what & ~(unsigned)CHANGE_TIMES))
		return;
	if (c->kind == CHANGE_ADD && !replaces)
		d->res->added++;
	else if (c->kind == CHANGE_DELETE)
		d->res->deleted++;
	else
		d->res->modified++;
	if (c->kind != CHANGE_DELETE && S_ISREG(c->after.st_mode))
		d->res->bytes += (uint64_t)c->after.st_size;
}

/* --- steps --- */

static int touch_parent(struct draft *d, uint32_t layer, const char *rel, struct err *e);

/*
 * A group that the sandbox could not keep is put right first: the plan then names the object as
 * it will be. Of several names of one inode the first decides.
 */
static int give_group(struct draft *d, struct plan_rec *r, struct err *e)
{
	bool several = d->layers[r->layer].lax_owner && !S_ISDIR(r->after.mode) &&
		       r->after.nlink > 1 && !plan_is_apart(r);
	const struct hardlink *t = several ? hardlinks_find(&d->given, r->layer,
							    r->after.ino)
					   : NULL;

	if (t) {
		r->after.gid = t->rec.after.gid;
		return 0;
	}
	if (apply_regroup(d->a, r, e) < 0)
		return -1;
	if (several)
		hardlinks_add(&d->given, r);
	return 0;
}

int draft_add(struct draft *d, struct plan_rec *r, struct err *e)
{
	if (r->kind != PLAN_META && r->kind != PLAN_DIR && !d->walked &&
	    touch_parent(d, r->layer, r->rel, e) < 0)
		return -1;
	if ((r->kind == PLAN_REPLACE || r->kind == PLAN_CREATE) &&
	    !(r->flags & PLAN_LINKED) && give_group(d, r, e) < 0)
		return -1;
	if (!d->w->dry_run && apply_relocate(d->a, r, plan_next(d->plan), e) < 0)
		return -1;
	if (d->w->paths && (!(r->flags & PLAN_CROSS) || plan_is_apart(r)))
		r->flags |= PLAN_PARK;
	if (plan_add(d->plan, r, e) < 0)
		return -1;
	d->res->changes++;
	return 0;
}

static int pack_xattrs(struct draft *d, const struct change *c, struct plan_rec *r,
		       struct err *e)
{
	buf_reset(&d->xb);
	buf_reset(&d->xa);
	if (apply_pack(d->a, r->layer, c->rel, true, &d->xb, e) < 0 ||
	    apply_pack(d->a, r->layer, c->rel, false, &d->xa, e) < 0)
		return -1;
	r->flags |= PLAN_XATTR;
	r->xbefore = buf_str(&d->xb);
	r->nxbefore = (uint32_t)d->xb.len;
	r->xafter = buf_str(&d->xa);
	r->nxafter = (uint32_t)d->xa.len;
	return 0;
}

/* Adds the step that makes a directory for a chosen path, with the attributes of the command's. */
static int add_mkdir(struct draft *d, struct plan_rec *r, struct err *e)
{
	buf_reset(&d->xa);
	if (apply_pack(d->a, r->layer, r->rel, false, &d->xa, e) < 0)
		return -1;
	r->kind = PLAN_MKDIR;
	r->flags |= PLAN_XATTR | (apply_is_copy(d->a, r->layer, r->rel) ? 0 : PLAN_BARE);
	r->nxbefore = 0;
	r->xafter = buf_str(&d->xa);
	r->nxafter = (uint32_t)d->xa.len;
	if (draft_add(d, r, e) < 0)
		return -1;
	r->flags &= ~(unsigned)PLAN_XATTR;
	r->nxafter = 0;
	r->before = (struct ident){ 0 }; /* a new one */
	draft_later(d, r->rel, r, true);
	return 0;
}

static bool holds(const struct plan_rec *dir, uint32_t layer, const char *rel)
{
	size_t n = strlen(dir->rel);

	if (dir->layer != layer)
		return false;
	return strcmp(dir->rel, ".") == 0 ||
	       (strncmp(dir->rel, rel, n) == 0 && rel[n] == '/');
}

/* Leaves the directories that do not hold @rel; the walk never returns to them. */
static void climb(struct draft *d, uint32_t layer, const char *rel)
{
	while (d->nabove > 0 && !holds(&d->dirs[d->above[d->nabove - 1]].rec, layer, rel))
		d->nabove--;
}

void draft_later(struct draft *d, const char *rel, const struct plan_rec *r, bool due)
{
	struct plan_rec *k, named;
	struct ident base;

	climb(d, r->layer, rel);
	if ((d->ndirs & (d->ndirs - 1)) == 0)
		d->dirs = xrealloc(d->dirs,
				   (d->ndirs ? 2 * d->ndirs : 16) * sizeof(*d->dirs));
	if (d->nabove == d->above_cap) {
		d->above_cap = d->above_cap ? 2 * d->above_cap : 16;
		d->above = xrealloc(d->above, d->above_cap * sizeof(*d->above));
	}
	d->above[d->nabove++] = d->ndirs;
	d->dirs[d->ndirs].due = due;
	k = &d->dirs[d->ndirs++].rec;
	named = *r;
	named.rel = rel;
	plan_rec_copy(k, &named);
	k->kind = PLAN_DIR;
	/* Somebody else changed what it holds: that it changed must stay visible. */
	if (k->before.mode && k->before.ctime >= d->t->rec.begin_ns &&
	    k->before.mtime > k->after.mtime &&
	    !(known_ident(d->known, k->layer, rel, &base) &&
	      ident_same(&base, &k->before)))
		k->after.mtime = k->before.mtime;
}

int draft_later_times(struct draft *d, uint32_t layer, const char *rel, bool due,
		      struct err *e)
{
	struct plan_rec r = { .layer = layer, .flags = PLAN_IS_DIR | PLAN_TIMES };

	if (apply_look(d->a, layer, rel, &r.before, &r.after, e) < 0)
		return -1;
	if (!S_ISDIR(r.before.mode))
		return 0;
	if (!S_ISDIR(r.after.mode))
		r.after = r.before;
	draft_later(d, rel, &r, due);
	return 0;
}

/* Moving names in or out of a directory changes its mtime: it will be put right. */
static int touch_parent(struct draft *d, uint32_t layer, const char *rel, struct err *e)
{
	const char *slash = strrchr(rel, '/');
	AUTO_FREE char *parent = slash ? xstrndup(rel, (size_t)(slash - rel))
				       : xstrdup(".");
	struct draft_dir *k;

	climb(d, layer, rel);
	k = d->nabove ? &d->dirs[d->above[d->nabove - 1]] : NULL;
	if (k && strcmp(k->rec.rel, parent) == 0) {
		k->due = true;
		return 0;
	}
	return draft_later_times(d, layer, parent, true, e);
}

/* Ids that the sandbox could not know, and modes that it made up for them, stay. */
static void keep_unknown(const struct change *c, struct plan_rec *r)
{
	if (!(c->what & CHANGE_OWNER)) {
		r->after.uid = r->before.uid;
		r->after.gid = r->before.gid;
	}
	if (!(c->what & CHANGE_MODE))
		r->after.mode = r->before.mode;
}

/*
 * A directory of both sides whose attributes differ: which side has changed them? Its ctime
 * moves with everything that is put into it, so the base must tell.
 */
static void judge_dir(struct draft *d, const struct change *c, struct plan_rec *r)
{
	bool mode = c->what & CHANGE_MODE, owner = c->what & CHANGE_OWNER;
	bool both = c->what & CHANGE_XATTR;
	struct ident base;

	if (!(c->what & (CHANGE_MODE | CHANGE_OWNER | CHANGE_XATTR)) ||
	    draft_is_ours(d, c->path) || r->before.ctime < d->t->rec.begin_ns ||
	    known_touched(d->known, d->a, r->layer, c->rel, &r->before))
		return;
	if (!known_ident(d->known, r->layer, c->rel, &base)) {
		draft_conflict(d, c, "changed here, changed on the host");
		return;
	}
	if (mode && r->after.mode == base.mode)
		r->after.mode = r->before.mode;
	else if (mode)
		both = both || r->before.mode != base.mode;
	if (owner && r->after.uid == base.uid && r->after.gid == base.gid) {
		r->after.uid = r->before.uid;
		r->after.gid = r->before.gid;
	} else if (owner) {
		both = both || r->before.uid != base.uid || r->before.gid != base.gid;
	}
	if (both)
		draft_conflict(d, c, "changed here, changed on the host");
}

/* The copy inside was the user's own; the host's object is not, whoever may write to it. */
static void judge_owner(struct draft *d, const struct change *c, const struct plan_rec *r)
{
	const struct change_layer *l = &d->layers[r->layer];

	if (l->lax_owner && r->before.uid != l->uid &&
	    (r->after.mode != r->before.mode || c->what & CHANGE_XATTR))
		draft_stuck(d, c, "changed here, belongs to another user on the host");
}

/* Which step it is depends on the other names: it waits until they are known. */
static int one_of_several(struct draft *d, const struct plan_rec *r, struct err *e)
{
	hardlinks_add(&d->several, r);
	return touch_parent(d, r->layer, r->rel, e);
}

static int modified(struct draft *d, const struct change *c, struct plan_rec *r,
		    struct err *e)
{
	if (c->what & CHANGE_XATTR && pack_xattrs(d, c, r, e) < 0)
		return -1;
	if (!(c->what & CHANGE_CONTENT)) {
		keep_unknown(c, r);
		judge_owner(d, c, r);
	}
	if (S_ISDIR(r->after.mode)) { /* its times change with what lies in it */
		judge_dir(d, c, r);
		draft_later(d, c->rel, r, c->what || r->before.mtime != r->after.mtime);
		return 0;
	}
	if (!(c->what & CHANGE_CONTENT)) {
		r->kind = PLAN_META;
		if (draft_only_theirs(d, c, r))
			r->after.mtime = r->before.mtime;
		if (r->after.nlink < 2 && r->before.nlink < 2)
			return draft_add(d, r, e);
		hardlinks_add(&d->several, r);
		return 0;
	}
	r->flags &= ~(unsigned)PLAN_XATTR;
	r->nxbefore = r->nxafter = 0;
	r->kind = PLAN_REPLACE;
	if (c->bare)
		r->flags |= PLAN_BARE;
	if (r->flags & PLAN_MERGED)
		return apply_merge(d->a, r, plan_next(d->plan), &d->merged, e) < 0
			       ? -1
			       : draft_add(d, r, e);
	if (r->after.nlink > 1)
		return one_of_several(d, r, e);
	if (!d->w->dry_run && apply_holes(d->a, r, e) < 0)
		return -1;
	return draft_add(d, r, e);
}

/*
 * The host has no directory there, but something else. If it is what the command has replaced, it
 * goes with what was chosen in the directory; if it is somebody's, it is in the way.
 */
static void no_directory(struct draft *d, const struct change *c,
			 const struct plan_rec *r)
{
	size_t top = strlen(c->path) - strlen(c->rel);
	AUTO_FREE char *path = xstrndup(c->path, top + strlen(r->rel));
	struct change dir = { .kind = CHANGE_TYPE, .path = path };

	if (!draft_is_ours(d, path) &&
	    known_changed(d->known, d->a, r->layer, r->rel, &r->before))
		draft_conflict(d, &dir, "holds what was chosen, changed on the host");
	d->res->modified++;
}

/* Or it has none any more, and the command found one there: nobody makes that again unasked. */
static void lost_directory(struct draft *d, const struct change *c,
			   const struct plan_rec *r, bool copy)
{
	size_t top = strlen(c->path) - strlen(c->rel);
	AUTO_FREE char *path = xstrndup(c->path, top + strlen(r->rel));
	struct change dir = { .kind = CHANGE_ADD, .path = path };

	if (!draft_is_ours(d, path) &&
	    (copy || known_changed(d->known, d->a, r->layer, r->rel, &r->before)))
		draft_conflict(d, &dir, "holds what was chosen, deleted on the host");
}

/* Directories above a chosen path that the host does not have yet. */
static int need_parents(struct draft *d, const struct change *c, struct err *e)
{
	AUTO_FREE char *rel = xstrdup(c->rel);

	for (char *s = strchr(rel, '/'); s; s = strchr(s + 1, '/')) {
		struct plan_rec r = { .layer = (uint32_t)c->layer,
				      .rel = rel,
				      .flags = PLAN_IS_DIR };

		*s = '\0';
		if (strncmp(buf_str(&d->made), rel, strlen(rel)) == 0 &&
		    (d->made.len == strlen(rel) ||
		     buf_str(&d->made)[strlen(rel)] == '/')) {
			*s = '/';
			continue;
		}
		if (apply_look(d->a, r.layer, rel, &r.before, &r.after, e) < 0)
			return -1;
		if (r.before.mode && !S_ISDIR(r.before.mode))
			no_directory(d, c, &r);
		if (!S_ISDIR(r.before.mode)) {
			if (!r.before.mode)
				lost_directory(d, c, &r,
					       apply_is_copy(d->a, r.layer, rel));
			if (add_mkdir(d, &r, e) < 0)
				return -1;
			buf_reset(&d->made);
			buf_adds(&d->made, rel);
		}
		*s = '/';
	}
	return 0;
}

/* Is something strictly below @dir left to the host? By name alone. */
static bool is_split(const struct draft *d, const char *dir)
{
	if (d->looking)
		return false;
	for (char **k = d->kept; k && *k; k++)
		if (strlen(dir) < strlen(*k) && path_within(*k, dir))
			return true;
	return false;
}

static int created(struct draft *d, const struct change *c, struct plan_rec *r,
		   struct err *e)
{
	if (d->w->paths && need_parents(d, c, e) < 0)
		return -1;
	r->kind = r->before.mode ? PLAN_REPLACE : PLAN_CREATE;
	if (!S_ISDIR(r->after.mode) && r->after.nlink > 1)
		return one_of_several(d, r, e);
	if (!S_ISDIR(r->after.mode))
		return draft_add(d, r, e);
	if (!r->before.mode && is_split(d, c->path))
		return add_mkdir(d, r, e);
	/* The directory moves after the links in it were made. */
	if ((d->nwholes & (d->nwholes - 1)) == 0)
		d->wholes = xrealloc(d->wholes, (d->nwholes ? 2 * d->nwholes : 8) *
							sizeof(*d->wholes));
	plan_rec_copy(&d->wholes[d->nwholes++], r);
	return touch_parent(d, r->layer, c->rel, e);
}

/* Is it part of something bigger that is moved as a whole? */
static bool part_of_whole(const struct draft *d, const struct change *c)
{
	AUTO_FREE char *path = NULL;

	if (!c->implied)
		return false;
	path = xstrdup(c->path);
	*strrchr(path, '/') = '\0';
	if (is_split(d, path))
		return false;
	return !d->w->paths || chosen_has(d->w->paths, path);
}

/*
 * The command has decided nothing about what it could not see: neither what it made there
 * nor what it did to a directory around may take that away unasked.
 */
static int check_hidden(struct draft *d, const struct change *c, struct plan_rec *r,
			struct err *e)
{
	struct ident up;

	/* The walk has not looked below; chosen by itself it meets what the host has. */
	if (c->kind == CHANGE_ADD && c->implied && !part_of_whole(d, c) &&
	    apply_look(d->a, r->layer, c->rel, &r->before, &up, e) < 0)
		return -1;
	if (!r->before.mode || draft_is_ours(d, c->path))
		return 0;
	d->res->hidden++;
	draft_conflict(
		d, c,
		c->kind == CHANGE_DELETE
			? "hidden from the command; would go with a directory around it"
			: "hidden from the command; the host has one");
	return 0;
}

/* A copy that nobody inside has changed, whatever the host has made of its own since. */
static bool is_as_found(struct draft *d, const struct change *c, const struct plan_rec *r)
{
	if (!c->after.st_mode || S_ISDIR(c->after.st_mode) || c->after.st_nlink > 1 ||
	    c->was_hidden || (r->before.mode && !draft_host_changed(d, c, &r->before)))
		return false;
	return known_untouched(d->known, d->a, r->layer, c->rel, &c->after);
}

static void note_retyped(struct draft *d, const struct change *c)
{
	if (!d->looking || c->kind != CHANGE_TYPE || !S_ISDIR(c->before.st_mode) ||
	    draft_is_ours(d, c->path))
		return;
	d->retyped = xrealloc(d->retyped, (d->nretyped + 1) * sizeof(*d->retyped));
	d->retyped[d->nretyped++] = xstrdup(c->path);
}

static int on_change(void *arg, const struct change *c, struct err *e)
{
	struct draft *d = arg;
	struct plan_rec r = { .layer = (uint32_t)c->layer, .rel = c->rel };
	bool visible = c->kind != CHANGE_MODIFY || c->what & ~(unsigned)CHANGE_TIMES;
	bool same;

	ident_from(&c->before, &r.before);
	ident_from(&c->after, &r.after);
	same = c->kind == CHANGE_MODIFY && !c->what && !S_ISDIR(r.after.mode);
	/* Chosen or not: others can be linked to it. */
	if (same && r.after.nlink > 1)
		hardlinks_add(&d->same, &r);
	if (is_as_found(d, c, &r))
		return 0;
	if (d->w->paths && !chosen_has(d->w->paths, c->path)) {
		d->res->left = d->res->left || visible;
		if (c->kind == CHANGE_MODIFY && S_ISDIR(c->after.st_mode))
			return draft_later_times(d, r.layer, c->rel, false, e);
		return 0;
	}
	if (draft_check_sides(d, c->path, e) < 0)
		return -1;
	note_retyped(d, c);
	if (!d->looking && draft_is_kept(d, c->path))
		return 0;
	if (same) {
		if (r.after.nlink > 1)
			hardlinks_add(&d->several, &r);
		return 0;
	}
	/* The directory around it stays, and so does this. */
	if (c->was_hidden && c->kind == CHANGE_DELETE && !c->implied)
		return 0;
	if (c->was_closed) {
		if (visible)
			draft_closed(d, c);
		return 0;
	}
	if (c->was_hidden && check_hidden(d, c, &r, e) < 0)
		return -1;
	/* Both sides have made the same of it: only the times differ, and the host's stay. */
	if (c->kind == CHANGE_MODIFY && c->what == CHANGE_TIMES &&
	    !draft_is_ours(d, c->path) &&
	    (draft_host_changed(d, c, &r.before) || draft_only_theirs(d, c, &r)))
		return 0;
	if (!(c->was_hidden && r.before.mode) &&
	    !(S_ISDIR(r.after.mode) && S_ISDIR(r.before.mode))) {
		uint64_t merged = d->res->merged;

		draft_check_conflict(d, c, &r.before);
		/* In a dry run the text is not written anywhere. */
		if (merged != d->res->merged && !d->w->dry_run)
			r.flags |= PLAN_MERGED;
	}
	draft_check_risk(d, c);
	count(d, c, r.before.mode != 0);
	if (draft_is_ours(d, c->path))
		r.flags |= PLAN_FORCE;
	if (S_ISDIR(r.after.mode) || (c->kind == CHANGE_DELETE && S_ISDIR(r.before.mode)))
		r.flags |= PLAN_IS_DIR;
	if (part_of_whole(d, c)) {
		if (r.after.mode && !S_ISDIR(r.after.mode) && r.after.nlink > 1)
			hardlinks_add(&d->inner, &r);
		return 0;
	}
	if (c->kind == CHANGE_MODIFY)
		return modified(d, c, &r, e);
	if (S_ISDIR(r.before.mode) && c->kind != CHANGE_MODIFY && is_split(d, c->path)) {
		/* An object that stays keeps the directory around it. */
		if (c->kind == CHANGE_TYPE)
			draft_conflict(d, c, "holds what the host is to keep");
		return 0;
	}
	if (c->kind == CHANGE_DELETE) {
		r.kind = PLAN_DELETE;
		r.after = (struct ident){ 0 };
		return r.before.mode ? draft_add(d, &r, e) : 0;
	}
	return created(d, c, &r, e);
}

static int add_wholes(struct draft *d, struct err *e)
{
	for (size_t i = 0; i < d->nwholes; i++)
		if (draft_add(d, &d->wholes[i], e) < 0)
			return -1;
	return 0;
}

/* Deepest first: met before what lies in them, so backwards. */
static int add_dirs(struct draft *d, struct err *e)
{
	for (size_t i = d->ndirs; i > 0; i--)
		if (d->dirs[i - 1].due && draft_add(d, &d->dirs[i - 1].rec, e) < 0)
			return -1;
	return 0;
}

static void draft_free(struct draft *d)
{
	for (size_t i = 0; i < d->ndirs; i++)
		plan_rec_free(&d->dirs[i].rec);
	free(d->dirs);
	for (size_t i = 0; i < d->nwholes; i++)
		plan_rec_free(&d->wholes[i]);
	free(d->wholes);
	free(d->above);
	hardlinks_free(&d->same);
	hardlinks_free(&d->dressed);
	hardlinks_free(&d->several);
	hardlinks_free(&d->inner);
	hardlinks_free(&d->given);
	buf_free(&d->made);
	buf_free(&d->merged);
	buf_free(&d->xb);
	buf_free(&d->xa);
	for (size_t i = 0; i < d->nkept; i++)
		free(d->kept[i]);
	free(d->kept);
	known_close(d->known);
}

/*
 * The command has replaced a directory by another kind of object, and the host wins at a path below
 * it: one name cannot hold both. The host keeps all of the directory then, unless --ours names it.
 */
static void keep_retyped(struct draft *d)
{
	d->looking = false;
	for (size_t i = 0; i < d->nretyped; i++) {
		if (is_split(d, d->retyped[i]))
			draft_keep(d, d->retyped[i]);
		free(d->retyped[i]);
	}
	free(d->retyped);
}

/*
 * --theirs speaks of conflicts: which are there, at those paths? Everything else at them is
 * committed like the rest.
 */
static int find_theirs(struct draft *d, int dirfd, const char *name, size_t nlayers,
		       struct err *e)
{
	struct commit_wish all = *d->w;
	struct commit_result none = { 0 };
	struct draft look = { .t = d->t,
			      .w = &all,
			      .a = d->a,
			      .layers = d->layers,
			      .known = d->known,
			      .res = &none,
			      .looking = true };
	int r;

	all.dry_run = true;
	all.judge = NULL;
	r = plan_create(dirfd, name, &look.plan, e);
	if (r == 0)
		r = change_walk(d->layers, nlayers, on_change, &look, e);
	if (look.plan)
		plan_abandon(look.plan);
	keep_retyped(&look);
	d->kept = look.kept;
	d->nkept = look.nkept;
	look.known = NULL;
	look.kept = NULL;
	look.nkept = 0;
	draft_free(&look);
	commit_result_free(&none);
	return r;
}

int draft_make(struct home *h, const struct txn *t, const struct commit_wish *w,
	       struct apply *a, const struct change_layer *layers, size_t n, int dirfd,
	       const char *name, struct commit_result *res, struct err *e)
{
	struct draft d = { .t = t, .w = w, .a = a, .layers = layers, .res = res };
	uint64_t steps;
	int r;

	if ((!w->dry_run && apply_tidy(a, e) < 0) || known_open(h, t, &d.known, e) < 0)
		return -1;
	r = w->theirs ? find_theirs(&d, dirfd, name, n, e) : 0;
	if (r == 0)
		r = plan_create(dirfd, name, &d.plan, e);
	if (r == 0)
		r = change_walk(layers, n, on_change, &d, e);
	d.walked = true;
	if (r == 0)
		r = draft_links(&d, e);
	if (r == 0)
		r = add_wholes(&d, e);
	if (r == 0)
		r = add_dirs(&d, e);
	if (r == 0)
		r = known_held(d.known, e);
	if (d.plan && (r < 0 || res->conflicts.n || w->dry_run)) {
		plan_abandon(d.plan);
		d.plan = NULL;
	}
	if (d.plan && r == 0)
		r = plan_finish(d.plan, &steps, e);
	draft_free(&d);
	return r;
}
