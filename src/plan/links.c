/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "plan/links.h"
#include "plan/parts.h"
#include "sys/fs.h"
#include "sys/move.h"
#include "sys/ns.h"

/*
 * Steps that make another name of an object of the host, where there is none or in the place
 * of another object.
 */

#define NO_TARGET \
	"is to be another name of a file that the host does not have there any more"

/* A name that is made (a link to @of), or removed (@of is NULL). */
struct naming {
	int dir;
	const char *name;
	int of_dir;
	const char *of;
};

static int set_name(void *arg)
{
	const struct naming *n = arg;

	if (n->of)
		return linkat(n->of_dir, n->of, n->dir, n->name, 0) < 0 ? -errno : 0;
	return unlinkat(n->dir, n->name, 0) < 0 ? -errno : 0;
}

/* Works in a directory that its owner may not write, too: see move_name(). */
static int set_name_anyhow(struct naming *n)
{
	struct stat st;
	int x = set_name(n);

	if (x == -EACCES)
		x = ns_try_override(set_name, n);
	if (x != -EACCES && x != -EPERM && x != -ENOSPC)
		return x;
	if (fstat(n->dir, &st) < 0 || st.st_uid != geteuid() ||
	    (st.st_mode & 0300) == 0300)
		return x;
	return fchmod(n->dir, st.st_mode | 0700) < 0 ? -errno : set_name(n);
}

/* Keeps an object of the host's under the name that the user has decided to replace. */
static int keep_his(const struct place *p)
{
	int x = move_name(p->host, p->name, p->old, p->slot, RENAME_NOREPLACE);

	if (x != -EEXIST)
		return x;
	x = apply_put_aside(p);
	return x < 0 ? x : move_name(p->host, p->name, p->old, p->slot, RENAME_NOREPLACE);
}

/* In a staged directory a copy makes room for the link, and is kept. */
static int link_forward(struct apply *a, const struct plan_rec *r, const struct place *p,
			const struct ident *now, const struct ident *target, int dir,
			const char *base, struct err *e)
{
	bool staged = r->flags & PLAN_STAGED;
	int to = staged ? p->up : p->host, x = 0;
	struct ident kept;

	if (ident_is(now, target) || (!staged && ident_is(now, &r->after)))
		return 0;
	/*
	 * The existing name is another file by now, whose owner did not agree to another name
	 * of it.
	 */
	if (!staged && !now->mode && !ident_is(target, &r->after)) {
		x = ident_at(p->old, p->slot, &kept);
		if (x == 0 && !ident_is(&kept, &r->after))
			return apply_conflict(a, r, NO_TARGET, e);
		if (x == 0)
			x = move_name(p->old, p->slot, to, p->name, RENAME_NOREPLACE);
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	if (staged && !target->mode) /* the copy will have to do */
		return 0;
	if (staged && ident_is(now, &r->after))
		x = move_name(to, p->name, p->old, p->slot, RENAME_NOREPLACE);
	else if (now->mode && apply_is_forced(a, r))
		x = keep_his(p);
	else if (now->mode)
		return apply_conflict(a, r, "was made on the host meanwhile", e);
	if (x == 0)
		x = FAULT_POINT("apply.link");
	if (x == 0)
		x = set_name_anyhow(&(struct naming){ to, p->name, dir, base });
	if (x == -EXDEV && staged)
		x = move_name(p->old, p->slot, to, p->name, RENAME_NOREPLACE);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * Removes the name that a step has made; if it is the last name of its file it is kept, for a
 * redo.
 */
static int take_name(const struct place *p, const struct ident *now, int from,
		     bool staged)
{
	int x;

	if (!staged && now->nlink < 2)
		return keep_his(p);
	x = FAULT_POINT("apply.unlink");
	return x < 0 ? x : set_name_anyhow(&(struct naming){ from, p->name, -1, NULL });
}

static int link_backward(struct apply *a, const struct plan_rec *r, const struct place *p,
			 struct ident *now, const struct ident *target, struct err *e)
{
	bool staged = r->flags & PLAN_STAGED;
	int from = staged ? p->up : p->host, x;

	/*
	 * The linked file may be elsewhere by now; if it was written to as well, this may be
	 * its only name.
	 */
	if (ident_is(now, target) || (!staged && ident_same(now, &r->after))) {
		x = take_name(p, now, from, staged);
		if (x < 0)
			return apply_failed(a, r, x, e);
		now->mode = 0;
	}
	if (now->mode && !staged && apply_is_forced(a, r)) {
		x = keep_his(p);
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	if (now->mode)
		return staged && ident_is(now, &r->after)
			       ? 0
			       : apply_conflict(
					 a, r, "was changed on the host after the commit",
					 e);
	x = ident_at(p->old, p->slot, now);
	/* On the host: what somebody had there, and the user has let make room. */
	if (x == 0 && now->mode && (staged || ident_is(now, &r->before)))
		x = move_name(p->old, p->slot, from, p->name, RENAME_NOREPLACE);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * Finds the file that a step links to, and the directory of its existing name; mode 0: it is
 * gone. -errno.
 */
static int find_target(const struct apply *a, const struct plan_rec *r, int *dir,
		       const char **base, struct ident *target)
{
	*target = (struct ident){ 0 };
	*dir = fs_open_parent(a->roots[r->layer].host, r->link, base);
	if (*dir >= 0)
		return ident_at(*dir, *base, target);
	return *dir == -ENOENT || *dir == -ENOTDIR || *dir == -ELOOP ? 0 : *dir;
}

int apply_check_link(struct apply *a, const struct plan_rec *r, const struct place *p,
		     bool forward, struct err *e)
{
	AUTO_CLOSE int dir = -1;
	struct ident now, target, kept;
	const char *base;
	int x;

	x = find_target(a, r, &dir, &base, &target);
	if (x == 0)
		x = ident_at(p->host, p->name, &now);
	if (x == 0)
		x = ident_at(p->old, p->slot, &kept);
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (forward && !ident_is(&target, &r->after) && !ident_is(&kept, &r->after))
		return apply_conflict(a, r, NO_TARGET, e);
	if (!now.mode || ident_is(&now, &target) ||
	    (!forward && ident_same(&now, &r->after)))
		return 0;
	return apply_conflict(a, r,
			      forward ? "was made on the host meanwhile"
				      : "was changed on the host after the commit",
			      e);
}

int apply_link(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	bool staged = r->flags & PLAN_STAGED;
	AUTO_CLOSE int dir = -1;
	struct ident now, target;
	const char *base;
	struct place p;
	int x;

	/* The directory need not exist on the host yet, nor in the upper any more. */
	if (apply_at(a, r, &p, e) < 0 && !(staged && e->kind == ERR_CONFLICT))
		return -1;
	/* In a directory that an undo has put aside names stay as they are. */
	if (staged && (p.up < 0 || r->flags & PLAN_ASIDE))
		return 0;
	x = find_target(a, r, &dir, &base, &target);
	if (x == 0)
		x = ident_at(staged ? p.up : p.host, p.name, &now);
	if (x < 0)
		return apply_failed(a, r, x, e);
	return forward ? link_forward(a, r, &p, &now, &target, dir, base, e)
		       : link_backward(a, r, &p, &now, &target, e);
}

/*
 * 1: the name exists, from before a crash, or as the host's own that an undo has kept. 0: it
 * has to be made, as a link to *@base in *@dir.
 */
static int look_at_name(struct apply *a, const struct plan_rec *r, const struct place *p,
			int *dir, const char **base, struct err *e)
{
	struct ident here, target = { 0 };
	int x = ident_at(p->staged, p->sname, &here);

	if (x == 0 && ident_is(&here, &r->after))
		return 1;
	if (x == 0)
		x = find_target(a, r, dir, base, &target);
	if (x < 0)
		return apply_failed(a, r, x, e);
	return ident_is(&target, &r->after) ? 0 : apply_conflict(a, r, NO_TARGET, e);
}

int apply_check_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		     struct err *e)
{
	AUTO_CLOSE int dir = -1;
	const char *base;

	if (!(r->flags & PLAN_LINKED))
		return 0;
	return look_at_name(a, r, p, &dir, &base, e) < 0 ? -1 : 0;
}

int apply_make_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e)
{
	AUTO_CLOSE int dir = -1;
	const char *base;
	int x;

	if (!(r->flags & PLAN_LINKED))
		return 0;
	x = look_at_name(a, r, p, &dir, &base, e);
	if (x != 0)
		return x < 0 ? -1 : 0;
	x = FAULT_POINT("apply.make-name");
	if (x == 0)
		x = set_name_anyhow(&(struct naming){ p->staged, p->sname, dir, base });
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

int apply_drop_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e)
{
	AUTO_CLOSE int dir = -1;
	struct ident here, target;
	const char *base;
	int x;

	if (!(r->flags & PLAN_LINKED))
		return 0;
	/* The place of its other name is not known: it is kept. */
	x = find_target(a, r, &dir, &base, &target);
	if (x == 0)
		x = ident_at(p->staged, p->sname, &here);
	if (x == 0 && ident_is(&here, &target) &&
	    (FAULT_AT("apply.drop-name") || unlinkat(p->staged, p->sname, 0) < 0))
		x = -errno;
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}
