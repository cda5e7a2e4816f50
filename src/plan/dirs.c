/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "layer/meta.h"
#include "plan/dirs.h"
#include "plan/parts.h"
#include "plan/swap.h"
#include "sys/fs.h"
#include "sys/move.h"
#include "sys/ns.h"

/*
 * Steps that move nothing: attributes of an object of the host, and directories that the step
 * makes itself.
 */

/* --- attributes, in place --- */

static bool sets_mode(const struct plan_rec *r)
{
	return !(r->flags & PLAN_TIMES) && r->before.mode != r->after.mode;
}

static bool sets_owner(const struct plan_rec *r)
{
	return !(r->flags & PLAN_TIMES) &&
	       (r->before.uid != r->after.uid || r->before.gid != r->after.gid);
}

static bool is_owner(const struct ident *a, const struct ident *b)
{
	return a->uid == b->uid && a->gid == b->gid;
}

int apply_check_attributes(struct apply *a, const struct plan_rec *r,
			   const struct place *p, const struct ident *now,
			   const char *what, struct err *e)
{
	int x = 1;

	if (sets_mode(r) && now->mode != r->before.mode && now->mode != r->after.mode)
		return apply_conflict(a, r, what, e);
	/* Without the right to set it the owner has stayed, or has become ours. */
	if (sets_owner(r) && !a->layers[r->layer].lax_owner &&
	    !is_owner(now, &r->before) && !is_owner(now, &r->after))
		return apply_conflict(a, r, what, e);
	if (r->flags & PLAN_XATTR)
		x = meta_is_either(p->host, p->name, r->xbefore, r->nxbefore, r->xafter,
				   r->nxafter);
	if (x < 0)
		return apply_failed(a, r, x, e);
	return x ? 0 : apply_conflict(a, r, what, e);
}

/* The attributes that the object gets: those of the step, and for the rest its present ones. */
static struct ident goal_of(const struct plan_rec *r, bool forward,
			    const struct ident *now)
{
	const struct ident *to = forward ? &r->after : &r->before;
	struct ident goal = *now;

	if (sets_mode(r))
		goal.mode = to->mode;
	if (sets_owner(r)) {
		goal.uid = to->uid;
		goal.gid = to->gid;
	}
	goal.mtime = to->mtime;
	return goal;
}

int apply_meta(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	const struct ident *from = forward ? &r->before : &r->after;
	const struct ident *to = forward ? &r->after : &r->before;
	struct ident goal;
	struct place p;
	struct ident now;
	int x;

	if (apply_meet(a, r, &p, &now, e) < 0)
		return -1;
	goal = goal_of(r, forward, &now);
	/* In both directions this is the host's own inode. */
	if (!ident_is(&now, &r->before))
		return apply_conflict(a, r, "was replaced on the host", e);
	if (r->kind == PLAN_META && !apply_is_forced(a, r) &&
	    (now.size != from->size || (now.mode != from->mode && now.mode != to->mode) ||
	     (now.mtime != from->mtime && now.mtime != to->mtime)))
		return apply_conflict(a, r, "was changed on the host", e);
	if (r->flags & PLAN_XATTR) {
		x = meta_own(p.host, p.name, &goal, a->layers[r->layer].lax_owner);
		if (x == 0)
			x = meta_change(p.host, p.name, forward ? r->xbefore : r->xafter,
					forward ? r->nxbefore : r->nxafter,
					forward ? r->xafter : r->xbefore,
					forward ? r->nxafter : r->nxbefore);
		if (x < 0)
			return apply_failed(a, r, x, e);
	}
	x = meta_set(p.host, p.name, &goal, a->layers[r->layer].lax_owner);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* --- a directory of its own --- */

/* Is the directory empty? 1, 0 or -errno. */
static int is_empty(int dir, const char *name)
{
	struct fs_names names = { 0 };
	int x, fd;

	do {
		fd = fs_open_dir_here(dir, name, O_RDONLY);
	} while (fd == -EACCES && ns_gain_override() == 0);
	x = fd < 0 ? fd : fs_names_read(fd, &names);
	cleanup_close(&fd);
	if (x == 0)
		x = names.n == 0;
	fs_names_free(&names);
	return x;
}

/* Removes a directory that a step has made; a directory that holds something new stays. */
static int take_away(struct apply *a, const struct plan_rec *r, const struct place *p,
		     struct err *e)
{
	int x = move_name(p->host, p->name, p->old, p->slot, RENAME_NOREPLACE);

	if (x == -EXDEV) {
		x = FAULT_AT("apply.rmdir") ||
				    unlinkat(p->host, p->name, AT_REMOVEDIR) < 0
			    ? -errno
			    : 0;
		return x < 0 && x != -ENOTEMPTY && x != -ENOENT ? apply_failed(a, r, x, e)
								: 0;
	}
	if (x == -EEXIST) /* ours is gone already: this one is new */
		return 0;
	/* A crash may have come after the removal and before the look at it. */
	if (x == -ENOENT || x == 0)
		x = is_empty(p->old, p->slot);
	if (x == 0)
		x = move_name(p->old, p->slot, p->host, p->name, RENAME_NOREPLACE);
	return x < 0 && x != -ENOENT ? apply_failed(a, r, x, e) : 0;
}

/*
 * Going on inside marks the upper's directory as a copy of the host's. If the host's was made
 * by us and is gone, the mark must go: nobody has deleted a directory that the command found.
 */
static int unmark_copy(struct apply *a, const struct plan_rec *r, const struct place *p,
		       struct err *e)
{
	AUTO_CLOSE int up = -1;
	struct ident now;
	int x = ident_at(p->host, p->name, &now);

	if (x < 0)
		return apply_failed(a, r, x, e);
	if (!now.mode && r->flags & PLAN_BARE && p->up >= 0)
		up = fs_open_dir_here(p->up, p->name, O_RDONLY);
	if (up >= 0)
		meta_unmark_copy(up);
	return 0;
}

/*
 * The mode of a directory between mkdir(2) and its attributes: a crash may leave one. Nobody else
 * makes a sticky directory that only its owner may enter.
 */
enum { HALF_MADE = S_ISVTX | 0700 };

static bool is_half_made(const struct ident *id)
{
	return S_ISDIR(id->mode) && (id->mode & (S_ISVTX | S_IRWXG | S_IRWXO)) == S_ISVTX;
}

/*
 * Gives a new directory the attributes of the command's directory, and no others: a default ACL
 * of the directory around has given it some. The mode 0700 keeps everybody else out until
 * PLAN_DIR sets the right mode: an ACL grants nothing beyond the mode.
 */
static int dress_dir(const struct plan_rec *r, int dir, const char *name)
{
	struct ident closed;
	int x = FAULT_POINT("apply.mkdir-attrs");

	if (x == 0)
		x = meta_unpack(dir, name, r->xafter, r->nxafter);
	if (x == 0)
		x = ident_at(dir, name, &closed);
	closed.mode = S_IFDIR | 0700 |
		      (closed.mode & S_ISGID); /* as mkdir(2) has set it */
	return x == 0 ? meta_set(dir, name, &closed, true) : x;
}

static int make_dir(const struct plan_rec *r, int dir, const char *name)
{
	bool dressed = r->flags & PLAN_XATTR;

	if (mkdirat(dir, name, dressed ? HALF_MADE : 0700) < 0)
		return -errno;
	return dressed ? dress_dir(r, dir, name) : 0;
}

/*
 * Makes a directory in the place of another object, by an exchange: the name is never missing.
 */
static int mkdir_instead(struct apply *a, const struct plan_rec *r, const struct place *p,
			 const struct ident *now, struct err *e)
{
	struct ident dir;
	int x;

	if (S_ISDIR(now->mode))
		return 0;
	if (!ident_same(now, &r->before))
		return apply_conflict(a, r,
				      now->mode ? "was changed on the host"
						: "was deleted on the host",
				      e);
	x = FAULT_POINT("apply.mkdir-instead");
	if (x == 0)
		x = make_dir(r, p->staged, p->sname);
	if (x == -EEXIST) /* made by the same step before a crash */
		x = r->flags & PLAN_XATTR ? dress_dir(r, p->staged, p->sname) : 0;
	if (x == 0)
		x = ident_at(p->staged, p->sname, &dir);
	if (x < 0)
		return apply_failed(a, r, x, e);
	return apply_exchange(a, r, p, &r->before, &dir, e);
}

/*
 * The directory has made room, now or before a crash: it stays on the host if it holds
 * something new, unless the user has decided otherwise.
 */
static int leave_to_others(struct apply *a, const struct plan_rec *r,
			   const struct place *p, struct err *e)
{
	struct ident dir;
	int x = ident_at(p->staged, p->sname, &dir);

	if (x == 0 && (!S_ISDIR(dir.mode) || apply_is_forced(a, r)))
		return 0;
	if (x == 0)
		x = is_empty(p->staged, p->sname);
	if (x > 0)
		return 0;
	if (x == 0)
		x = apply_swap(a, p);
	return x < 0 ? apply_failed(a, r, x, e)
		     : apply_conflict(a, r,
				      "holds what was made on the host after the commit",
				      e);
}

static int unmake_instead(struct apply *a, const struct plan_rec *r,
			  const struct place *p, const struct ident *now, struct err *e)
{
	struct ident kept;
	int x = ident_at(p->staged, p->sname, &kept);

	if (x < 0)
		return apply_failed(a, r, x, e);
	if (ident_is(now, &r->before))
		return leave_to_others(a, r, p, e);
	if (!ident_is(&kept, &r->before))
		return apply_conflict(a, r, "has lost what it was before", e);
	if (!now->mode) { /* the host has deleted the directory since */
		x = move_name(p->staged, p->sname, p->host, p->name, RENAME_NOREPLACE);
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	if (!S_ISDIR(now->mode) && !apply_is_forced(a, r))
		return apply_conflict(a, r, "was changed on the host after the commit",
				      e);
	return apply_exchange(a, r, p, now, &r->before, e) < 0
		       ? -1
		       : leave_to_others(a, r, p, e);
}

int apply_mkdir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	struct ident now;
	struct place p;
	int x;

	if (apply_meet(a, r, &p, &now, e) < 0)
		return -1;
	if (r->before.mode) {
		x = apply_resume(a, &p);
		if (x == 0)
			x = ident_at(p.host, p.name, &now);
		if (x < 0)
			return apply_failed(a, r, x, e);
		if (forward)
			return mkdir_instead(a, r, &p, &now, e);
		return unmake_instead(a, r, &p, &now, e) < 0 ? -1
							     : unmark_copy(a, r, &p, e);
	}
	if (!forward) {
		if ((S_ISDIR(now.mode) || !now.mode) && take_away(a, r, &p, e) < 0)
			return -1;
		return unmark_copy(a, r, &p, e);
	}
	if (is_half_made(&now) && now.uid == geteuid() && r->flags & PLAN_XATTR &&
	    is_empty(p.host, p.name) == 1) {
		x = dress_dir(r, p.host, p.name);
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	if (S_ISDIR(now.mode))
		return 0;
	if (now.mode)
		return apply_conflict(a, r, "was made on the host meanwhile", e);
	/*
	 * Puts back the same directory if it was taken away: later change lists know its
	 * inode.
	 */
	x = move_name(p.old, p.slot, p.host, p.name, RENAME_NOREPLACE);
	if (x == -ENOENT || x == -EXDEV)
		x = FAULT_AT("apply.mkdir") ? -errno : make_dir(r, p.host, p.name);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * Sets the attributes of the staged directory, if it still exists: moving objects out of it
 * has changed its times.
 */
static int dir_staged(struct apply *a, const struct plan_rec *r, const struct place *p,
		      struct err *e)
{
	struct ident now;
	int x = 0;

	if (p->up >= 0)
		x = ident_at(p->up, p->name, &now);
	if (x == 0 && p->up >= 0 && S_ISDIR(now.mode))
		x = meta_set(p->up, p->name, &r->after, true);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * The inode of a directory that we have made is known only now: the plan has its attributes
 * alone.
 */
static int dir_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct ident now;
	struct place p;
	int x;

	if (apply_meet(a, r, &p, &now, e) < 0)
		return -1;
	if (r->before.mode && apply_meta(a, r, true, e) < 0)
		return -1;
	/* Another object that the host has there is left to it. */
	if (!r->before.mode && S_ISDIR(now.mode)) {
		x = meta_set(p.host, p.name, &r->after, a->layers[r->layer].lax_owner);
		if (x < 0)
			return apply_failed(a, r, x, e);
	}
	/* The rest of its contents stays pending. */
	return r->flags & PLAN_PARK ? dir_staged(a, r, &p, e) : 0;
}

static int dir_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;

	if (r->before.mode && apply_meta(a, r, false, e) < 0)
		return -1;
	/* The directory above may be one that we made, and gone by now. */
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	return dir_staged(a, r, &p, e);
}

int apply_dir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	struct place p;

	if (r->flags & PLAN_ASIDE)
		return apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT
			       ? -1
			       : dir_staged(a, r, &p, e);
	return forward ? dir_forward(a, r, e) : dir_backward(a, r, e);
}
