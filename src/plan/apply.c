/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/checks.h"
#include "plan/dirs.h"
#include "plan/links.h"
#include "plan/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/text.h"
#include "layer/meta.h"
#include "plan/shared.h"
#include "plan/stage.h"
#include "plan/swap.h"
#include "sys/fs.h"
#include "sys/move.h"
#include "sys/ns.h"

static int open_layer(struct apply *a, const struct change_layer *l, struct roots *r,
		      struct err *e)
{
	AUTO_FREE char *old = xasprintf("%.*sold", (int)(strlen(l->upper) - 2), l->upper);

	if (l->away)
		return 0;
	r->host = open(l->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->host < 0)
		return err_sys(e, errno, "cannot open %s", l->host);
	r->up = open(l->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->up < 0)
		return err_sys(e, errno, "cannot open %s", l->upper);
	if ((FAULT_AT("apply.make-old") || mkdir(old, 0700) < 0) && errno != EEXIST)
		return err_sys(e, errno, "cannot make %s", old);
	r->old = open(old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->old < 0)
		return err_sys(e, errno, "cannot open %s", old);
	a->by_hand = a->by_hand || faccessat(r->old, BY_HAND_MARK, F_OK, 0) == 0;
	return 0;
}

int apply_open(const struct change_layer *layers, size_t n, struct apply **out,
	       struct err *e)
{
	struct apply *a = xcalloc(1, sizeof(*a));

	*a = (struct apply){ .layers = layers, .n = n, .host = -1, .up = -1 };
	a->roots = xcalloc(n, sizeof(*a->roots));
	for (size_t i = 0; i < n; i++)
		a->roots[i] = (struct roots){ -1, -1, -1 };
	for (size_t i = 0; i < n; i++)
		if (open_layer(a, &layers[i], &a->roots[i], e) < 0) {
			apply_close(a);
			return -1;
		}
	*out = a;
	return 0;
}

void apply_close(struct apply *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++) {
		cleanup_close(&a->roots[i].host);
		cleanup_close(&a->roots[i].up);
		cleanup_close(&a->roots[i].old);
	}
	for (size_t i = 0; i < a->nbeside; i++)
		close(a->beside[i].fd);
	free(a->beside);
	for (size_t i = 0; i < a->ndisks; i++)
		close(a->disks[i].fd);
	free(a->disks);
	free(a->shared);
	cleanup_close(&a->host);
	cleanup_close(&a->up);
	dircache_free(&a->to_host);
	dircache_free(&a->to_up);
	buf_free(&a->dir);
	free(a->roots);
	free(a);
}

/* --- errors: they name the path, quoted --- */

static void quote(struct buf *b, const struct apply *a, const struct plan_rec *r)
{
	AUTO_BUF struct buf path = BUF_INIT;
	const char *host = a->layers[r->layer].host;

	buf_addf(&path, "%s/%s", strcmp(host, "/") == 0 ? "" : host, r->rel);
	text_quote(b, buf_str(&path), path.len);
}

int apply_failed(const struct apply *a, const struct plan_rec *r, int err, struct err *e)
{
	AUTO_BUF struct buf q = BUF_INIT;

	quote(&q, a, r);
	return err_sys(e, err, "cannot change %.400s", buf_str(&q));
}

int apply_conflict(struct apply *a, const struct plan_rec *r, const char *what,
		   struct err *e)
{
	AUTO_BUF struct buf q = BUF_INIT;

	snprintf(a->why, sizeof(a->why), "%s", what);
	quote(&q, a, r);
	return err_set(e, ERR_CONFLICT, "%.400s %s", buf_str(&q), what);
}

bool apply_lost_dir(const struct apply *a)
{
	return a->lost_dir;
}

const char *apply_why(const struct apply *a)
{
	return a->why;
}

void apply_began(struct apply *a, int64_t ns)
{
	a->began = ns;
}

void apply_decided(struct apply *a, bool own, bool takes_back)
{
	a->decided = own;
	a->takes_back = takes_back;
}

void apply_moved(struct apply *a, const struct apply_moves *m)
{
	a->moves = *m;
}

void apply_since(struct apply *a, int64_t ns, apply_excuse *excuse, void *arg)
{
	a->since = ns;
	a->excuse = excuse;
	a->excuse_arg = arg;
}

void apply_since_undo(struct apply *a, int64_t ns)
{
	a->since_undo = ns;
}

/* --- finding the place --- */

static size_t dir_len(const char *rel)
{
	const char *slash = strrchr(rel, '/');

	return slash ? (size_t)(slash - rel) : 0;
}

bool apply_is_here(const struct apply *a, const struct plan_rec *r)
{
	size_t len = dir_len(r->rel);

	return a->host >= 0 && a->up >= 0 && a->layer == r->layer && a->dir.len == len &&
	       memcmp(buf_str(&a->dir), r->rel, len) == 0;
}

/*
 * Opens the directory of a step. O_PATH needs only search permission; a directory whose mode
 * gives the owner not even that (a command has left it with mode 000) is opened with more
 * rights.
 */
static int open_place(int root, const char *dir)
{
	AUTO_CLOSE int fd = fs_open_beneath(root, dir, O_RDONLY | O_DIRECTORY);
	struct stat st;

	if (fd == -EACCES)
		fd = fs_open_beneath(root, dir, O_PATH | O_DIRECTORY);
	if (fd >= 0 ? fstatat(fd, ".", &st, 0) == 0 : fd != -EACCES)
		return TAKE_FD(fd);
	if (ns_gain_override() < 0)
		return -EACCES;
	cleanup_close(&fd);
	fd = fs_open_beneath(root, dir, O_RDONLY | O_DIRECTORY);
	return TAKE_FD(fd);
}

/* A directory that may be read and not searched (mode 0600) is of no use here. */
static int open_by(struct dircache *t, int root, const char *dir)
{
	const char *base;
	int parent = dircache_to(t, root, dir, &base);
	AUTO_CLOSE int fd = parent < 0 ? parent
				       : fs_open_beneath(parent, base,
							 O_RDONLY | O_DIRECTORY);
	struct stat st;

	return fd < 0 || fstatat(fd, ".", &st, 0) < 0 ? open_place(root, dir)
						      : TAKE_FD(fd);
}

/*
 * Writes @n in decimal. snprintf() is slower, and this is called several times for each file
 * of a commit.
 */
static void put_number(char *to, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	memcpy(to, digits + i, sizeof(digits) - i);
	to[sizeof(digits) - i] = '\0';
}

int apply_at(struct apply *a, const struct plan_rec *r, struct place *p, struct err *e)
{
	size_t len = dir_len(r->rel);
	const struct roots *root;

	*p = (struct place){ .host = -1, .up = -1, .old = -1, .store = -1 };
	if (r->layer >= a->n)
		return err_set(e, ERR_CORRUPT,
			       "a change list names a layer that is not there");
	root = &a->roots[r->layer];
	if (!apply_is_here(a, r)) {
		cleanup_close(&a->host);
		cleanup_close(&a->up);
		if (a->layer != r->layer) {
			dircache_drop(&a->to_host);
			dircache_drop(&a->to_up);
		}
		buf_reset(&a->dir);
		buf_add(&a->dir, r->rel, len);
		a->layer = r->layer;
		a->elsewhere = -1;
		a->host = open_by(&a->to_host, root->host, len ? buf_str(&a->dir) : ".");
		a->up = open_by(&a->to_up, root->up, len ? buf_str(&a->dir) : ".");
		apply_note_disk(a, a->host);
		apply_note_disk(a, a->up);
	}
	*p = (struct place){ .host = a->host,
			     .up = a->up,
			     .staged = a->up,
			     .old = root->old,
			     .store = root->old,
			     .name = r->rel + len + (len > 0) };
	p->sname = p->name;
	put_number(p->slot, r->serial);
	if (r->flags & PLAN_CROSS || plan_is_apart(r)) {
		snprintf(p->copy, sizeof(p->copy), "s%llu",
			 (unsigned long long)r->serial);
		p->sname = p->copy;
		p->staged = root->old;
	}
	if (r->flags & PLAN_ASIDE) {
		snprintf(p->copy, sizeof(p->copy), "a%llu",
			 (unsigned long long)r->serial);
		p->sname = p->copy;
		p->staged = root->old;
	}
	if (r->flags & PLAN_CROSS)
		p->staged = p->old = apply_beside(a, r, false);
	a->lost_dir = p->host == -ENOENT || p->host == -ENOTDIR || p->host == -ELOOP;
	if (a->lost_dir)
		return apply_conflict(a, r, "has lost its directory on the host", e);
	if (p->host < 0)
		return apply_failed(a, r, p->host, e);
	return 0;
}

int apply_meet(struct apply *a, const struct plan_rec *r, struct place *p,
	       struct ident *now, struct err *e)
{
	int x;

	if (apply_at(a, r, p, e) < 0)
		return -1;
	x = ident_at(p->host, p->name, now);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* --- replace --- */

/*
 * No process may have the file open for writing while it is exchanged: the process would go on
 * writing to the replaced version. A lease proves that there is no writer, and tells if one
 * comes. Returns an fd that holds the lease, -EAGAIN if there is a writer, another -errno if
 * this file can have no lease (not ours, not readable): the comparison of identities remains.
 */
static int take_lease(int dir, const char *name)
{
	AUTO_CLOSE int fd = openat(dir, name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == EAGAIN ? -EAGAIN : -ENOLCK;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN ? -EAGAIN : -ENOLCK;
	return TAKE_FD(fd);
}

/*
 * XFS does not move the ctime of a file that is exchanged, as other filesystems do. Without a
 * new ctime another transaction that has seen the old version would take ours for older than
 * that.
 */
static int stamp(const struct apply *a, int dir, const char *name,
		 const struct ident *on_host)
{
	struct ident now;
	int x;

	if (S_ISDIR(on_host->mode) || !a->began)
		return 0;
	x = ident_at(dir, name, &now);
	return x == 0 && ident_is(&now, on_host) && now.ctime < a->began
		       ? meta_stamp(dir, name)
		       : x;
}

/* XFS moves the times of a directory that is exchanged, as if its contents had changed. */
static int unstamp(int dir, const char *name, const struct ident *was)
{
	struct ident now;
	int x;

	if (!S_ISDIR(was->mode))
		return 0;
	x = ident_at(dir, name, &now);
	if (x == 0 && ident_is(&now, was) && now.mtime != was->mtime)
		x = meta_set(dir, name, was, true);
	return x;
}

/*
 * Another process has changed the host in this very moment: its version is put back. If it has
 * written once more meanwhile, its newest version must end up on the host, over ours.
 */
static int swap_back(struct apply *a, const struct plan_rec *r, const struct place *p,
		     const struct ident *ours, struct err *e)
{
	struct ident now;
	int x;

	x = apply_swap(a, p);
	if (x == -ENOENT) /* the other process deleted the object */
		x = move_name(p->staged, p->sname, p->host, p->name, RENAME_NOREPLACE);
	if (x < 0)
		return apply_failed(a, r, x, e);
	x = ident_at(p->staged, p->sname, &now);
	if (x == 0 && now.mode && !ident_is(&now, ours)) {
		x = apply_swap(a, p);
		if (x == 0)
			x = move_name(p->staged, p->sname, p->old, p->slot,
				      RENAME_NOREPLACE);
	}
	if (x == 0)
		x = unstamp(p->staged, p->sname, ours);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

int apply_exchange(struct apply *a, const struct plan_rec *r, const struct place *p,
		   const struct ident *expected, const struct ident *ours, struct err *e)
{
	AUTO_CLOSE int lease = -ENOLCK;
	struct ident out;
	bool lost;
	int x;

	if (S_ISREG(expected->mode) && !apply_is_forced(a, r)) {
		lease = take_lease(p->host, p->name);
		if (lease == -EAGAIN)
			return apply_conflict(
				a, r, "is open for writing in another program", e);
	}
	x = apply_swap(a, p);
	if (x == -EBUSY)
		return apply_conflict(a, r, "was changed while it was committed", e);
	if (x < 0)
		return apply_failed(a, r, x, e);
	x = ident_at(p->staged, p->sname, &out);
	if (S_ISDIR(out.mode)) /* apply_verify() looks at its contents */
		out.mtime = expected->mtime;
	lost = x == 0 && (!ident_same(&out, expected) ||
			  (lease >= 0 && fcntl(lease, F_GETLEASE) != F_RDLCK));
	if (lost)
		return swap_back(a, r, p, ours, e) < 0
			       ? -1
			       : apply_conflict(a, r,
						"was changed while it was committed", e);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* After an exchange, also one that a crash has interrupted: directories keep their mtime. */
static int settle(struct apply *a, const struct plan_rec *r, const struct place *p,
		  const struct ident *on_host, const struct ident *staged, struct err *e)
{
	int x = unstamp(p->host, p->name, on_host);

	if (x == 0)
		x = stamp(a, p->host, p->name, on_host);
	if (x == 0 && p->staged >= 0)
		x = unstamp(p->staged, p->sname, staged);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* Moves the command's own version aside while the merged one is on the host, or back: 1. */
static int park_own(const struct place *p, bool away)
{
	int x;

	if (p->up < 0)
		return 0;
	x = away ? move_name(p->up, p->name, p->store, p->slot, RENAME_NOREPLACE)
		 : move_name(p->store, p->slot, p->up, p->name, RENAME_NOREPLACE);
	return x == -ENOENT || x == -EEXIST ? 0 : x == 0 ? 1 : x;
}

static int park(struct apply *a, const struct plan_rec *r, const struct place *p,
		struct err *e)
{
	struct ident id;
	int x;

	if (!(r->flags & PLAN_PARK))
		return 0;
	if (plan_is_apart(r)) {
		x = park_own(p, true);
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	x = ident_at(p->staged, p->sname, &id);
	if (x == 0 && ident_is(&id, &r->before))
		x = move_name(p->staged, p->sname, p->old, p->slot, RENAME_NOREPLACE);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

static int create_forward(struct apply *a, const struct plan_rec *r, struct err *e);
static int create_backward(struct apply *a, const struct plan_rec *r, struct err *e);

/* Takes a step back: what the step has put on the host returns to the staged place. */
static int take_out(struct apply *a, const struct plan_rec *r, const struct place *p,
		    const struct ident *now, struct err *e)
{
	int x;

	if (!ident_same(now, &r->before) &&
	    !(S_ISDIR(now->mode) && ident_is(now, &r->before)))
		return apply_conflict(a, r, "was changed on the host", e);
	x = move_name(p->host, p->name, p->staged, p->sname, RENAME_NOREPLACE);
	if (x < 0)
		return apply_failed(a, r, x, e);
	return park(a, r, p, e);
}

/* Is it the directory of the step? Its contents decide (apply_whole()), not its own times. */
static bool is_own_dir(const struct ident *now, const struct plan_rec *r)
{
	return S_ISDIR(now->mode) && ident_is(now, &r->after);
}

/* apply_meet() where an exchange by hand may have been interrupted. */
static int meet_resumed(struct apply *a, const struct plan_rec *r, struct place *p,
			struct ident *now, struct err *e)
{
	int x;

	if (apply_at(a, r, p, e) < 0)
		return -1;
	x = apply_resume(a, p);
	if (x == 0)
		x = ident_at(p->host, p->name, now);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/*
 * Has the host the expected object, or that object with attributes that another step has set
 * through another name of it?
 */
static bool is_expected(struct apply *a, const struct plan_rec *r,
			const struct ident *now)
{
	return ident_same(now, &r->before) ||
	       (now->nlink > 1 && ident_is(now, &r->before) && apply_is_shared(a, now));
}

static int replace_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now;

	if (meet_resumed(a, r, &p, &now, e) < 0)
		return -1;
	if (!r->before.mode) /* the host had nothing there */
		return create_forward(a, r, e) < 0 ? -1 : park(a, r, &p, e);
	if (!r->after.mode) /* the object is to go again */
		return now.mode ? take_out(a, r, &p, &now, e) : 0;
	if (!ident_is(&now, &r->after)) {
		if (!is_expected(a, r, &now))
			return apply_conflict(a, r,
					      now.mode ? "was changed on the host"
						       : "was deleted on the host",
					      e);
		if (apply_make_name(a, r, &p, e) < 0 ||
		    apply_exchange(a, r, &p, &now, &r->after, e) < 0)
			return -1;
	}
	if (settle(a, r, &p, &r->after, &r->before, e) < 0)
		return -1;
	return park(a, r, &p, e);
}

/* Returns the parked object to its staged place first; the rest is the plain case. 1: something
 * has moved; 0: nothing has; or -errno. */
static int unpark(const struct plan_rec *r, const struct place *p,
		  const struct ident *now)
{
	struct ident kept;
	int x;

	if (!(r->flags & PLAN_PARK))
		return 0;
	if (plan_is_apart(r))
		return park_own(p, false);
	x = ident_at(p->old, p->slot, &kept);
	if (x < 0 || !kept.mode || ident_is(now, &r->before))
		return x;
	x = move_name(p->old, p->slot, p->staged, p->sname, RENAME_NOREPLACE);
	return x == -EEXIST ? 0 : x == 0 ? 1 : x;
}

/* Undoes unpark() after a conflict: a refused step leaves the store as it was. Only when a commit
 * is taken back, the command's own version is pending again whatever the host has. */
static int park_again(struct apply *a, const struct plan_rec *r, const struct place *p,
		      bool moved, struct err *e)
{
	int x;

	if (!plan_is_apart(r))
		return park(a, r, p, e);
	x = moved && !a->takes_back ? park_own(p, true) : 0;
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* Exchanges what the step took away, which is in its staged place, with what the host has. */
static int put_back(struct apply *a, const struct plan_rec *r, const struct place *p,
		    const struct ident *now, struct err *e)
{
	struct ident kept;
	int x = ident_at(p->staged, p->sname, &kept);

	if (x == 0 && !ident_is(&kept, &r->before)) {
		x = apply_take_aside(r, p, p->staged, p->sname);
		if (x == 0)
			x = ident_at(p->staged, p->sname, &kept);
	}
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (!ident_is(&kept, &r->before))
		return apply_conflict(a, r, "has lost what it was before", e);
	if (now->mode ? !ident_same(now, &r->after) && !is_own_dir(now, r)
		      : r->after.mode != 0)
		return apply_conflict(a, r, "was changed on the host after the commit",
				      e);
	if (!now->mode) { /* the host has deleted it since, and the user wants it back */
		x = move_name(p->staged, p->sname, p->host, p->name, RENAME_NOREPLACE);
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	if (apply_whole(a, r, p, now, false, e) < 0)
		return -1;
	if (apply_exchange(a, r, p, now, &r->before, e) < 0 ||
	    settle(a, r, p, &r->before, &r->after, e) < 0)
		return -1;
	return apply_drop_name(a, r, p, e);
}

static int replace_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now;
	struct err why;
	int moved;

	if (meet_resumed(a, r, &p, &now, e) < 0)
		return -1;
	moved = unpark(r, &p, &now);
	if (moved < 0)
		return apply_failed(a, r, moved, e);
	if (r->before.mode && ident_is(&now, &r->before))
		return settle(a, r, &p, &r->before, &r->after, e) < 0
			       ? -1
			       : apply_drop_name(a, r, &p, e);
	if ((r->before.mode ? put_back(a, r, &p, &now, &why)
			    : create_backward(a, r, &why)) == 0)
		return 0;
	if (why.kind == ERR_CONFLICT && park_again(a, r, &p, moved > 0, e) < 0)
		return -1;
	*e = why;
	return -1;
}

/* --- create --- */

static int create_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now;
	bool gone;
	int x;

	if (apply_at(a, r, &p, e) < 0)
		return -1;
	x = move_name(p.staged, p.sname, p.host, p.name, RENAME_NOREPLACE);
	if (x == 0)
		return 0;
	if (x != -EEXIST && x != -ENOENT)
		return apply_failed(a, r, x, e);
	gone = x == -ENOENT;
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (ident_is(&now, &r->after))
		return 0; /* done before a crash */
	return apply_conflict(a, r,
			      gone ? "has lost what was to be there"
				   : "was made on the host meanwhile",
			      e);
}

static int create_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now;
	int x;

	if (apply_meet(a, r, &p, &now, e) < 0)
		return -1;
	if (!ident_is(&now, &r->after)) {
		x = ident_at(p.staged, p.sname, &now);
		if (x < 0)
			return apply_failed(a, r, x, e);
		if (ident_is(&now, &r->after))
			return 0;
		return apply_conflict(a, r, "was changed on the host after the commit",
				      e);
	}
	if (!S_ISDIR(now.mode) && !ident_same(&now, &r->after))
		return apply_conflict(a, r, "was changed on the host after the commit",
				      e);
	if (apply_whole(a, r, &p, &now, false, e) < 0)
		return -1;
	x = move_name(p.host, p.name, p.staged, p.sname, RENAME_NOREPLACE);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* --- delete --- */

static int delete_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	AUTO_CLOSE int lease = -ENOLCK;
	struct place p;
	struct ident now, moved;
	int x, failed;

	if (apply_meet(a, r, &p, &now, e) < 0)
		return -1;
	if (r->after.mode)
		return apply_trade(a, r, &p, &now, true, e);
	if (!now.mode)
		return 0; /* done, or deleted by the host itself */
	if (!ident_same(&now, &r->before)) {
		x = ident_at(p.old, p.slot, &moved);
		if (x < 0)
			return apply_failed(a, r, x, e);
		if (ident_is(&moved, &r->before))
			return 0; /* done, and the host has made a new one since */
		return apply_conflict(a, r, "was changed on the host", e);
	}
	if (S_ISREG(now.mode) && !apply_is_forced(a, r)) {
		lease = take_lease(p.host, p.name);
		if (lease == -EAGAIN)
			return apply_conflict(
				a, r, "is open for writing in another program", e);
	}
	x = move_name(p.host, p.name, p.old, p.slot, RENAME_NOREPLACE);
	if (x < 0)
		return apply_failed(a, r, x, e);
	x = ident_at(p.old, p.slot, &moved);
	if (x == 0 && ident_same(&moved, &r->before) &&
	    (lease < 0 || fcntl(lease, F_GETLEASE) == F_RDLCK))
		return 0;
	failed = x; /* a failed look is no conflict */
	x = move_name(p.old, p.slot, p.host, p.name, RENAME_NOREPLACE);
	if (x == -EEXIST) /* another process has made a newer one */
		x = apply_put_aside(&p);
	if (x == 0)
		x = failed;
	return x < 0 ? apply_failed(a, r, x, e)
		     : apply_conflict(a, r, "was changed while committing", e);
}

static int delete_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident kept;
	int x;

	if (apply_at(a, r, &p, e) < 0)
		return -1;
	x = apply_take_aside(r, &p, p.old, p.slot);
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (r->after.mode) {
		x = ident_at(p.host, p.name, &kept);
		return x < 0 ? apply_failed(a, r, x, e)
			     : apply_trade(a, r, &p, &kept, false, e);
	}
	x = ident_at(p.old, p.slot, &kept);
	if (x < 0)
		return apply_failed(a, r, x, e);
	if (!kept.mode)
		return 0;
	x = move_name(p.old, p.slot, p.host, p.name, RENAME_NOREPLACE);
	if (x == -EEXIST)
		return apply_conflict(a, r, "was made anew on the host after the commit",
				      e);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

static int step(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	switch (r->kind) {
	case PLAN_REPLACE:
		return forward ? replace_forward(a, r, e) : replace_backward(a, r, e);
	case PLAN_CREATE:
		return forward ? create_forward(a, r, e) : create_backward(a, r, e);
	case PLAN_DELETE:
		return forward ? delete_forward(a, r, e) : delete_backward(a, r, e);
	case PLAN_META:
		return apply_meta(a, r, forward, e);
	case PLAN_MKDIR:
		return apply_mkdir(a, r, forward, e);
	case PLAN_DIR:
		return apply_dir(a, r, forward, e);
	case PLAN_BASE:
		return 0;
	case PLAN_LINK:
		return apply_link(a, r, forward, e);
	case PLAN_LEAVE:
		return apply_left(a, r, forward, e);
	}
	return err_set(e, ERR_CORRUPT, "a change list holds an unknown step");
}

int apply_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	if (!FAULT_SKIP("apply.forward") && step(a, r, true, e) < 0)
		return -1;
	apply_note_shared(a, r, true);
	return 0;
}

/*
 * The directory of the step was to be made by another step, and was not: nothing to take back.
 */
static bool was_never(struct apply *a, const struct plan_rec *r)
{
	struct ident id;
	struct place p;
	struct err e;

	if ((r->kind != PLAN_CREATE && r->kind != PLAN_LINK && r->kind != PLAN_MKDIR) ||
	    r->flags & PLAN_STAGED) /* in a directory that was put back already */
		return false;
	if (apply_at(a, r, &p, &e) == 0 || e.kind != ERR_CONFLICT)
		return false;
	return r->kind != PLAN_CREATE ||
	       (p.staged >= 0 && ident_at(p.staged, p.sname, &id) == 0 &&
		ident_is(&id, &r->after));
}

int apply_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	if (FAULT_SKIP("apply.backward") || was_never(a, r))
		return 0;
	return step(a, r, false, e);
}
