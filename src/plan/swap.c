/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "plan/parts.h"
#include "plan/swap.h"
#include "sys/move.h"

/* Exchanging, and what stands in for it on filesystems that cannot. */

static bool look(int dir, const char *name, struct stat *st)
{
	return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static void aside_name(const struct place *p, char name[32])
{
	snprintf(name, 32, "x%s", p->slot);
}

/*
 * Gives the host's object a second name, so that it can be replaced without ever being
 * missing. An object that can have none (a directory, a file of another user) moves there, and
 * its place is empty for a moment.
 */
static int put_beside(const struct place *p, const char *aside)
{
	struct stat host, staged;

	if (!look(p->host, p->name, &host) || !look(p->staged, p->sname, &staged))
		return -errno;
	if ((FAULT_AT("swap.mark") || mkdirat(p->old, BY_HAND_MARK, 0700) < 0) &&
	    errno != EEXIST)
		return -errno;
	if (S_ISDIR(host.st_mode) || S_ISDIR(staged.st_mode))
		return move_name(p->host, p->name, p->old, aside, 0);
	if (!FAULT_AT("swap.aside") && linkat(p->host, p->name, p->old, aside, 0) == 0)
		return 0;
	return errno == EPERM || errno == EMLINK || move_lacks(errno)
		       ? move_name(p->host, p->name, p->old, aside, 0)
		       : -errno;
}

/*
 * Is the object still the same? Another process may have saved in between, which must not be
 * overwritten knowingly.
 */
static bool is_still(const struct place *p, const char *aside)
{
	struct stat host, kept;

	return look(p->old, aside, &kept) &&
	       (!look(p->host, p->name, &host) || is_same(&host, &kept));
}

static int swap_by_hand(const struct place *p)
{
	char aside[32];
	int x;

	aside_name(p, aside);
	x = put_beside(p, aside);
	if (x == 0 && !is_still(p, aside))
		x = -EBUSY;
	if (x == 0)
		x = move_name(p->staged, p->sname, p->host, p->name, 0);
	if (x == 0)
		x = move_name(p->old, aside, p->staged, p->sname, 0);
	return x;
}

int apply_swap(struct apply *a, const struct place *p)
{
	int x = move_name(p->staged, p->sname, p->host, p->name, RENAME_EXCHANGE);

	if (!move_lacks(-x))
		return x;
	a->by_hand = true;
	x = swap_by_hand(p);
	if (x == -EBUSY && apply_resume(a, p) < 0)
		x = -EIO;
	return x;
}

int apply_trade(struct apply *a, const struct plan_rec *r, const struct place *p,
		const struct ident *now, bool forward, struct err *e)
{
	const struct ident *from = forward ? &r->before : &r->after;
	const struct ident *to = forward ? &r->after : &r->before;
	struct place slot = *p;
	struct ident here = *now;
	int x;

	slot.staged = p->old;
	slot.sname = p->slot;
	x = apply_resume(a, &slot);
	if (x == 0)
		x = ident_at(p->host, p->name, &here);
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (ident_is(&here, to))
		return 0;
	if (!ident_same(&here, from) && !(S_ISDIR(here.mode) && ident_is(&here, from)))
		return apply_conflict(a, r, "was changed on the host", e);
	x = apply_swap(a, &slot);
	if (x == -EBUSY)
		return apply_conflict(a, r, "was changed while it was exchanged", e);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

int apply_resume(struct apply *a, const struct place *p)
{
	struct stat kept, host, staged;
	char aside[32], name[36];

	if (!a->by_hand || p->old < 0 || p->staged < 0 || p->host < 0)
		return 0;
	aside_name(p, aside);
	if (!look(p->old, aside, &kept))
		return 0;
	if (!look(p->host, p->name, &host))
		return move_name(p->old, aside, p->host, p->name, 0);
	if (!look(p->staged, p->sname, &staged))
		return move_name(p->old, aside, p->staged, p->sname, 0);
	if (is_same(&kept, &host))
		return FAULT_AT("swap.forget") || unlinkat(p->old, aside, 0) < 0 ? -errno
										 : 0;
	/*
	 * The object that came to the place meanwhile is somebody else's and stays; ours is
	 * kept.
	 */
	snprintf(name, sizeof(name), "%s~", aside);
	return move_name(p->old, aside, p->old, name, 0);
}
