/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "layer/meta.h"
#include "plan/checks.h"
#include "plan/dirs.h"
#include "plan/links.h"
#include "plan/parts.h"
#include "plan/shared.h"
#include "sys/fs.h"
#include "sys/move.h"
#include "sys/ns.h"

/* Looking at what steps will meet, and at what they have left. */

enum { FOUND_MAX = 80 };

struct search {
	struct apply *a;
	int64_t since;
	/* Until then other names of what it finds may have been moved by ourselves, if there is
	 * nothing that says it of each. */
	int64_t moved;
	uint32_t layer;
	bool excuses; /* what we put back ourselves does not count */
	bool files;   /* nor do directories that were there when we were last at it */
	struct buf path;
	struct buf
		found; /* the first path that bears a change, where that could be noted */
};

static void search_free(struct search *s)
{
	buf_free(&s->path);
	buf_free(&s->found);
}

#define AUTO_SEARCH __attribute__((cleanup(search_free)))

static int has_newer(struct search *s, int dir, const char *name);

struct locked {
	struct search *s;
	int dir;
	const char *name;
};

static int look_inside(void *arg)
{
	const struct locked *l = arg;

	return has_newer(l->s, l->dir, l->name);
}

/*
 * In a directory that its owner may not read. By a child: with the right to look, this process
 * would no longer see the groups of what it compares.
 */
static int has_newer_locked(struct search *s, int dir, const char *name)
{
	struct locked l = { s, dir, name };

	/* The list of excuses is read now: the journal is not the child's to use. */
	if (s->excuses && s->a->excuse)
		s->a->excuse(s->a->excuse_arg, "", &(struct ident){ 0 });
	if (s->excuses && s->a->moves.until)
		s->a->moves.until(s->a->moves.arg, s->layer, NULL, &(struct ident){ 0 });
	return ns_try_override(look_inside, &l);
}

/*
 * Only by its ctime, and we have moved another name of it: the rest of it is what we know,
 * which is all that is asked of a file that is taken away by itself, too.
 */
static bool is_moved(const struct search *s, const struct ident *id)
{
	const struct apply_moves *m = &s->a->moves;

	if (id->nlink < 2 || id->ctime >= s->moved || !apply_is_shared(s->a, id))
		return false;
	return !s->excuses || !m->until ||
	       id->ctime < m->until(m->arg, s->layer, NULL, id);
}

/* Was it made after the last operation of ours? If that is not known, it was not. */
static bool is_born(const struct search *s, const struct ident *id)
{
	return s->moved && id->btime >= s->moved;
}

/* Is it changed at or after @since, and nobody excuses it? s->path is its path. */
static bool is_newer(struct search *s, const struct ident *id)
{
	if (id->ctime < s->since || is_moved(s, id) ||
	    (s->files && S_ISDIR(id->mode) && !is_born(s, id)) ||
	    (s->excuses && s->a->excuse &&
	     s->a->excuse(s->a->excuse_arg, buf_str(&s->path), id)))
		return false;
	if (!s->found.len)
		buf_add(&s->found, buf_str(&s->path), s->path.len);
	return true;
}

/* Does anything below @dir bear a change made at or after @since? -errno. */
static int has_newer(struct search *s, int dir, const char *name)
{
	AUTO_CLOSE int fd = fs_open_dir_here(dir, name, O_RDONLY);
	size_t len = s->path.len;
	struct fs_names names;
	struct ident id;
	int x;

	if (fd == -EACCES)
		return has_newer_locked(s, dir, name);
	if (fd < 0)
		return fd == -EXDEV ? 1 : TAKE_FD(fd); /* a mount: surely not ours */
	x = fs_names_read(fd, &names);
	if (x < 0)
		return x;
	for (size_t i = 0; i < names.n && x == 0; i++) {
		buf_addf(&s->path, "/%s", names.v[i]);
		x = ident_at(fd, names.v[i], &id);
		if (x == -EACCES) { /* it may be read, and not searched */
			buf_truncate(&s->path, len);
			fs_names_free(&names);
			return has_newer_locked(s, dir, name);
		}
		if (x == 0)
			x = is_newer(s, &id);
		if (x == 0 && S_ISDIR(id.mode))
			x = has_newer(s, fd, names.v[i]);
		buf_truncate(&s->path, len);
	}
	fs_names_free(&names);
	return x;
}

/* Names what was found below the directory of the step, if that is short enough to be read. */
static int tell_found(struct apply *a, const struct plan_rec *r, const struct search *s,
		      const char *what, struct err *e)
{
	AUTO_BUF struct buf text = BUF_INIT;
	size_t top = strlen(a->layers[r->layer].host) + 1 + strlen(r->rel) + 1;

	buf_adds(&text, what);
	if (s->found.len > top && s->found.len - top < FOUND_MAX) {
		buf_adds(&text, ": ");
		text_quote(&text, buf_str(&s->found) + top, s->found.len - top);
	}
	return apply_conflict(a, r, buf_str(&text), e);
}

int apply_whole(struct apply *a, const struct plan_rec *r, const struct place *p,
		const struct ident *now, bool forward, struct err *e)
{
	AUTO_SEARCH struct search s = { .a = a,
					.since = forward ? a->since_undo : a->since,
					.moved = a->moves.last,
					.layer = r->layer,
					.excuses = true };
	const struct ident *was = forward ? &r->before : &r->after;
	int x;

	if (!S_ISDIR(now->mode) || apply_is_forced(a, r) || !s.since)
		return 0;
	buf_addf(&s.path, "%s/%s", a->layers[r->layer].host, r->rel);
	if (now->mode != was->mode || now->uid != was->uid || now->gid != was->gid)
		return apply_conflict(
			a, r,
			forward ? "was changed on the host"
				: "was changed on the host after the commit",
			e);
	x = now->mtime != was->mtime || is_newer(&s, now);
	if (x == 0)
		x = has_newer(&s, p->host, p->name);
	if (x < 0)
		return apply_failed(a, r, x, e);
	return x ? tell_found(
			   a, r, &s,
			   forward ? "holds what was changed on the host after the undo"
				   : "holds what was changed on the host after the "
				     "commit",
			   e)
		 : 0;
}

/* Where a done step has put what it took away: under its number, or in the staged place. */
static bool is_in_old(const struct plan_rec *r)
{
	return r->kind == PLAN_DELETE || (r->flags & PLAN_PARK && !plan_is_apart(r));
}

/*
 * A file that is the same by all that stat(2) tells but for its ctime, which has moved since we
 * were last at it: somebody has written to it and set its time again, or given it attributes,
 * or nothing but a link. Only who knows what it held can tell.
 */
static int check_untouched(struct apply *a, const struct plan_rec *r,
			   const struct ident *now, const char *what, struct err *e)
{
	const struct apply_moves *m = &a->moves;
	AUTO_BUF struct buf path = BUF_INIT;

	if (!S_ISREG(now->mode) || !m->last || now->ctime < m->all)
		return 0;
	if (now->ctime < m->last && now->ctime < m->until(m->arg, r->layer, r->rel, now))
		return 0;
	buf_addf(&path, "%s/%s", a->layers[r->layer].host, r->rel);
	return a->excuse && a->excuse(a->excuse_arg, buf_str(&path), now)
		       ? 0
		       : apply_conflict(a, r, what, e);
}

/* What the host must have at the place of a step that is still to be done. */
static int expect(struct apply *a, const struct plan_rec *r, const struct place *p,
		  const struct ident *now, bool forward, struct err *e)
{
	const struct ident *from = forward ? &r->before : &r->after;
	const struct ident *to = forward ? &r->after : &r->before;
	const char *when = forward ? "was changed on the host"
				   : "was changed on the host after the commit";
	const char *touched =
		forward ? "was changed or touched on the host"
			: "was changed or touched on the host after the commit";

	if (r->kind == PLAN_DIR && !ident_is(now, &r->before))
		return apply_conflict(a, r,
				      now->mode ? "was replaced on the host"
						: "was deleted on the host",
				      e);
	if (r->kind == PLAN_META && /* always the host's own inode */
	    (!ident_is(now, &r->before) || now->size != from->size ||
	     (now->mode != from->mode && now->mode != to->mode) ||
	     (now->mtime != from->mtime && now->mtime != to->mtime)))
		return apply_conflict(a, r, when, e);
	if (r->kind == PLAN_DIR || r->kind == PLAN_META)
		return apply_check_attributes(a, r, p, now, when, e);
	if (to->mode ? ident_is(now, to) : !now->mode && forward)
		return 0; /* as it will be */
	if (!from->mode)
		return now->mode
			       ? apply_conflict(a, r, "was made on the host meanwhile", e)
			       : 0;
	if (!ident_same(now, from) && !(S_ISDIR(now->mode) && ident_is(now, from)))
		return apply_conflict(a, r, now->mode ? when : "was deleted on the host",
				      e);
	if (check_untouched(a, r, now, touched, e) < 0 ||
	    (forward && apply_check_name(a, r, p, e) < 0))
		return -1;
	return apply_whole(a, r, p, now, forward, e);
}

/*
 * A directory that a commit made is to be taken away: are its mode and attributes those that the
 * command gave it (the directory in the upper has them), or did the host change them?
 */
static int check_dressed(struct apply *a, const struct plan_rec *r, const struct place *p,
			 const struct ident *now, struct err *e)
{
	AUTO_BUF struct buf host = BUF_INIT, up = BUF_INIT;
	bool ours = now->mode == r->after.mode || r->before.mode;
	int x = meta_pack(p->host, p->name, &host);

	if (x == 0 && p->up >= 0)
		x = meta_pack(p->up, p->name, &up);
	if (x == -ENOENT || x == -ENOTDIR) /* the command has taken it away since */
		x = 0;
	if (x < 0)
		return apply_failed(a, r, x, e);
	ours = ours && (meta_is_plain(p->host, &host, buf_str(&up), up.len) ||
			meta_is_plain(p->host, &host, r->xafter, r->nxafter));
	return ours ? 0
		    : apply_conflict(a, r, "was changed on the host after the commit", e);
}

/* A directory that is made: is there room for it; and later for what it has taken the place of? */
static int expect_instead(struct apply *a, const struct plan_rec *r,
			  const struct place *p, const struct ident *now, bool forward,
			  struct err *e)
{
	/* Later commits, and their undos, have been at the directories in it. An empty one of
	 * somebody's from before those is found when ours is taken away. */
	AUTO_SEARCH struct search s = { .a = a,
					.since = a->since,
					.moved = a->moves.last,
					.layer = r->layer,
					.excuses = true,
					.files = true };
	struct ident kept;
	int x = 0;

	if (forward && !r->before.mode)
		return !now->mode || S_ISDIR(now->mode)
			       ? 0
			       : apply_conflict(a, r, "was made on the host meanwhile",
						e);
	if (forward)
		return ident_same(now, &r->before) ||
				       (S_ISDIR(now->mode) &&
					ident_at(p->staged, p->sname, &kept) == 0 &&
					ident_is(&kept, &r->before))
			       ? 0
			       : apply_conflict(a, r,
						now->mode ? "was changed on the host"
							  : "was deleted on the host",
						e);
	if (a->since && S_ISDIR(now->mode) && !ident_is(now, &r->before) &&
	    check_dressed(a, r, p, now, e) < 0)
		return -1;
	if (!now->mode || !r->before.mode || ident_is(now, &r->before))
		return 0;
	if (!S_ISDIR(now->mode))
		return apply_conflict(a, r, "was changed on the host after the commit",
				      e);
	if (a->since) {
		buf_addf(&s.path, "%s/%s", a->layers[r->layer].host, r->rel);
		x = has_newer(&s, p->host, p->name);
	}
	if (x < 0)
		return apply_failed(a, r, x, e);
	return x ? tell_found(a, r, &s,
			      "holds what was made on the host after the commit", e)
		 : 0;
}

static bool is_looked_at(const struct plan_rec *r)
{
	switch (r->kind) {
	case PLAN_REPLACE:
	case PLAN_CREATE:
	case PLAN_DELETE:
	case PLAN_META:
		return true;
	case PLAN_MKDIR:
		return true;
	case PLAN_DIR: /* of one that was there before, and must be in either direction */
		return r->before.mode;
	case PLAN_LINK:
		return !(r->flags & PLAN_STAGED);
	default:
		return false;
	}
}

int apply_check(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	struct ident now;
	struct place p;
	int x;

	if (!is_looked_at(r))
		return 0;
	/* A directory that another step makes is not there yet. Without one nobody can have the
	 * step done, whatever he has decided. */
	if (apply_at(a, r, &p, e) < 0)
		return forward && e->kind == ERR_CONFLICT && !r->before.mode ? 0 : -1;
	if (apply_is_forced(a, r))
		return 0;
	if (r->kind == PLAN_LINK)
		return apply_check_link(a, r, &p, forward, e);
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return apply_failed(a, r, x, e);
	return r->kind == PLAN_MKDIR ? expect_instead(a, r, &p, &now, forward, e)
				     : expect(a, r, &p, &now, forward, e);
}

/* Was the upper's directory made after the commit? Then what lay in the one before is gone. */
static int is_new_dir(const struct apply *a, int up)
{
	struct ident dir;
	int x = a->since ? ident_at(up, ".", &dir) : 0;

	return a->since && x == 0 ? dir.btime >= a->since : x;
}

/* A commit leaves the directory in the upper with the attributes of its step. */
static int is_dressed_anew(const struct plan_rec *r, const struct place *p)
{
	struct ident up;
	int x = ident_at(p->up, p->name, &up);

	return x < 0 ? x
		     : S_ISDIR(up.mode) &&
			       (up.mode != r->after.mode || up.mtime != r->after.mtime);
}

int apply_is_taken(struct apply *a, const struct plan_rec *r, struct err *e)
{
	bool link = r->kind == PLAN_LINK && r->flags & PLAN_STAGED;
	struct ident up;
	struct place p;
	int x;

	if (!(r->flags & PLAN_PARK) || r->flags & PLAN_CROSS || plan_is_apart(r) ||
	    (r->kind != PLAN_REPLACE && r->kind != PLAN_CREATE && r->kind != PLAN_DIR &&
	     !link))
		return 0;
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	if (p.up == -ENOENT || p.up == -ENOTDIR || p.up == -ELOOP)
		return r->kind != PLAN_DIR && !link;
	/* The staged directory around it is on the host: what is here is another one. */
	if (link && p.up >= 0)
		return 1;
	x = p.up < 0 ? p.up : 0;
	if (x == 0 && r->kind == PLAN_DIR)
		x = is_dressed_anew(r, &p);
	else if (x == 0)
		x = ident_at(p.up, p.name, &up);
	if (x == 0 && r->kind != PLAN_DIR)
		x = up.mode ? 1 : is_new_dir(a, p.up);
	return x < 0 ? apply_failed(a, r, x, e) : x;
}

int apply_leave(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident id = { 0 };
	int x = 0;

	if (r->kind != PLAN_REPLACE && r->kind != PLAN_DELETE)
		return 0;
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	if (plan_is_apart(r)) /* the command's own is in its place again already */
		return apply_drop_name(a, r, &p, e);
	if (r->kind == PLAN_REPLACE && p.staged >= 0)
		x = ident_at(p.staged, p.sname, &id);
	if (x == 0 && ident_is(&id, &r->before))
		x = move_name(p.staged, p.sname, p.old, p.slot, RENAME_NOREPLACE);
	if (x == 0 && p.old >= 0)
		x = ident_at(p.old, p.slot, &id);
	if (x == 0 && ident_is(&id, &r->before))
		x = apply_put_aside(&p);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

int apply_stay(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct ident id = { 0 };
	struct place p;
	int x;

	if (r->kind != PLAN_REPLACE || !(r->flags & PLAN_PARK))
		return 0;
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	x = p.staged < 0 ? 0 : ident_at(p.staged, p.sname, &id);
	if (x == 0 && ident_is(&id, &r->before))
		x = plan_is_apart(r)
			    ? move_name(p.up, p.name, p.store, p.slot, RENAME_NOREPLACE)
			    : move_name(p.staged, p.sname, p.old, p.slot,
					RENAME_NOREPLACE);
	/* Without an upper there is nothing of the command's in it. */
	return x < 0 && x != -EEXIST && x != -ENOENT && x != -EBADF
		       ? apply_failed(a, r, x, e)
		       : 0;
}

int apply_left(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	struct ident id = { 0 };
	struct place p;
	int x = 0;

	/* The host's directory does not matter. */
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	if (p.up >= 0)
		x = forward ? ident_at(p.old, p.slot, &id) : ident_at(p.up, p.name, &id);
	if (x == 0 && ident_is(&id, &r->before))
		x = forward ? move_name(p.old, p.slot, p.up, p.name, RENAME_NOREPLACE)
			    : move_name(p.up, p.name, p.old, p.slot, RENAME_NOREPLACE);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

/* Of these something is kept, if there was something. */
static bool takes_away(const struct plan_rec *r)
{
	return (r->kind == PLAN_REPLACE || r->kind == PLAN_DELETE ||
		r->kind == PLAN_MKDIR) &&
	       r->before.mode;
}

bool apply_is_kept(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident id = { 0 };

	if (!takes_away(r))
		return true;
	if (apply_at(a, r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return false;
	if (is_in_old(r))
		ident_at(p.old, p.slot, &id);
	/* Or on the way back, if a crash came. */
	if (!ident_is(&id, &r->before) && p.staged >= 0)
		ident_at(p.staged, p.sname, &id);
	/* Or back at its place, if only this step was undone. */
	if (!ident_is(&id, &r->before) && p.host >= 0)
		ident_at(p.host, p.name, &id);
	if (!ident_is(&id, &r->before))
		apply_find_aside(&p, &id);
	return ident_is(&id, &r->before);
}

int apply_verify(struct apply *a, const struct plan_rec *r, struct err *e)
{
	bool in_old = is_in_old(r);
	AUTO_SEARCH struct search s = { .a = a, .since = a->began, .moved = INT64_MAX };
	struct place p;
	struct ident out;
	const char *name;
	int dir, x;

	if (!takes_away(r) || apply_is_forced(a, r))
		return 0;
	if (!S_ISREG(r->before.mode) && !S_ISDIR(r->before.mode))
		return 0;
	if (apply_at(a, r, &p, e) < 0)
		return -1;
	dir = in_old ? p.old : p.staged;
	name = in_old ? p.slot : p.sname;
	x = ident_at(dir, name, &out);
	if (x == 0 && !out.mode) /* it was gone before we came */
		return 0;
	/* A step may have set attributes by another name of it. */
	if (x == 0 && !ident_same(&out, &r->before))
		x = !(out.nlink > 1 && apply_is_shared(a, &out));
	if (x == 0 && S_ISDIR(out.mode) && a->began) {
		x = has_newer(&s, dir, name);
	}
	if (x < 0)
		return apply_failed(a, r, x, e);
	return x ? apply_conflict(a, r, "was written to while it was committed", e) : 0;
}
