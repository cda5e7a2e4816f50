/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "ckpt/place.h"
#include "ckpt/state.h"
#include "commit/operate.h"
#include "inplace/back.h"
#include "inplace/parts.h"
#include "inplace/trees.h"
#include "sys/fs.h"
#include "txn/chosen.h"
#include "txn/end.h"
#include "txn/parts.h"
#include "txn/state.h"

/*
 * Back to the snapshot, in a tree that others work in, too. What they did is what differs between
 * the end of the command and now.
 */

/* A state, and where the contents of its files are. */
struct side {
	const struct ck_state *s;
	int root;
};

struct spot {
	struct ck_entry *before, *now; /* one of them may be missing */
	bool leave;		       /* it stays what it is now */
	bool others;		       /* somebody else has changed it */
};

struct back {
	const struct txn_record *rec;
	struct give_up *g;
	struct trees t;
	struct side before, now, end, after; /* root -1: there is none */
	struct ck_state end_state, after_state;
	struct ck_state end_covered; /* see struct trees */
	struct spot *v;		     /* in order of paths */
	size_t n;
};

static const char *rel_of(const struct spot *s)
{
	return s->now ? s->now->rel : s->before->rel;
}

static bool is_dir(const struct ck_entry *e)
{
	return e && S_ISDIR(e->id.mode);
}

static bool same_content(int a, int b, const char *rel)
{
	AUTO_CLOSE int x = fs_open_beneath(a, rel, O_RDONLY | O_NONBLOCK);
	AUTO_CLOSE int y = fs_open_beneath(b, rel, O_RDONLY | O_NONBLOCK);
	char p[8192], q[8192];
	off_t at = 0;
	ssize_t n;

	if (x < 0 || y < 0)
		return false;
	while ((n = pread(x, p, sizeof(p), at)) > 0) {
		if (pread(y, q, (size_t)n, at) != n || memcmp(p, q, (size_t)n) != 0)
			return false;
		at += n;
	}
	return n == 0;
}

/* Are both equal but for times and for further names? */
static bool is_alike(const struct side *sa, const struct ck_entry *a,
		     const struct side *sb, const struct ck_entry *b)
{
	if (!a || !b)
		return !a && !b;
	if (a->id.mode != b->id.mode || a->id.uid != b->id.uid ||
	    a->id.gid != b->id.gid || a->rdev != b->rdev ||
	    strcmp(a->link, b->link) != 0 || a->nxattrs != b->nxattrs ||
	    (a->nxattrs && memcmp(a->xattrs, b->xattrs, a->nxattrs) != 0))
		return false;
	if (!S_ISREG(a->id.mode))
		return true;
	return a->id.size == b->id.size &&
	       (a->obj == b->obj || same_content(sa->root, sb->root, a->rel));
}

static struct ck_entry *at(const struct side *s, const char *rel)
{
	return s->root < 0 ? NULL : ck_find(s->s, 0, rel);
}

/* Has somebody else changed it since the command ended? */
static bool is_others(const struct back *b, const struct spot *s)
{
	const struct ck_entry *end = at(&b->end, rel_of(s)), *after;

	if (b->end.root < 0)
		return !is_alike(&b->before, s->before, &b->now, s->now);
	if (b->after.root < 0)
		return !is_alike(&b->end, end, &b->now, s->now);
	/* A rollback has begun before: what is gone since then, or as it was, is its work. */
	after = at(&b->after, rel_of(s));
	return !is_alike(&b->end, end, &b->after, after) ||
	       (s->now && !is_alike(&b->after, after, &b->now, s->now) &&
		!is_alike(&b->before, s->before, &b->now, s->now));
}

static bool is_touched(const struct back *b, const struct spot *s)
{
	return b->end.root < 0 ||
	       !is_alike(&b->before, s->before, &b->end, at(&b->end, rel_of(s)));
}

static char *path_of(const struct back *b, const char *rel)
{
	const char *top = txn_in_place(b->rec);

	return xasprintf("%s%s%s", strcmp(top, "/") == 0 ? "" : top, *rel ? "/" : "",
			 rel);
}

/* Asks the user: 0, and s->leave or not; or a note, or -1. */
static int ask(struct back *b, struct spot *s, const char *what, struct err *e)
{
	AUTO_FREE char *path = path_of(b, rel_of(s));

	switch (chosen_side(b->g->ours, b->g->theirs, path)) {
	case CHOSEN_BOTH:
		return chosen_twice(path, e);
	case CHOSEN_NEITHER:
		path_notes_add(&b->g->conflicts, path, what);
		s->leave = true;
		return 0;
	case CHOSEN_OURS:
		s->leave = false;
		return 0;
	case CHOSEN_THEIRS:
		s->leave = true;
	}
	return 0;
}

/* The rollback cannot restore @rel: a conflict, unless the user has chosen --theirs for it. */
static void stuck(struct back *b, const char *rel, const char *what)
{
	AUTO_FREE char *path = path_of(b, rel);
	size_t n = b->g->conflicts.n;

	if (chosen_side(b->g->ours, b->g->theirs, path) == CHOSEN_THEIRS)
		return;
	path_notes_add(&b->g->conflicts, path, what);
	if (b->g->conflicts.n > n)
		b->g->conflicts.v[n].stuck = true;
}

static const char *words(const struct back *b, const struct spot *s)
{
	if (b->end.root < 0)
		return "changed since it began; when it ended is not known";
	return s->now ? "changed by it, and by others since it ended"
		      : "changed by it, deleted since it ended";
}

static int decide(struct back *b, struct spot *s, struct err *e)
{
	const struct ck_entry *end = at(&b->end, rel_of(s));

	s->others = is_others(b, s);
	if (!s->others) {
		/* Somebody else's names in it have given it the time that it has. */
		s->leave = is_dir(s->before) && is_dir(s->now) && is_dir(end) &&
			   s->now->id.mtime != end->id.mtime && b->after.root < 0 &&
			   !is_touched(b, s);
		return 0;
	}
	s->leave = true;
	if (!is_touched(b, s) || is_alike(&b->before, s->before, &b->now, s->now))
		return 0;
	return ask(b, s, words(b, s), e);
}

static bool is_edge(const struct ck_entry *e)
{
	return e && e->flags & CK_EDGE;
}

/*
 * Spot @i is another subvolume in the snapshot or in the tree, but not in both. The rollback leaves
 * the spot as it is, and all spots below a subvolume of the tree. A conflict tells the user if the
 * command has changed anything of what the rollback leaves. Returns the number of the next spot.
 */
static size_t decide_edge(struct back *b, size_t i)
{
	struct spot *s = &b->v[i];
	bool touched = false, nested = is_edge(s->now);
	size_t k = i;

	for (; k < b->n && path_within(rel_of(&b->v[k]), rel_of(s)); k++) {
		if (k > i && !nested)
			break;
		touched = touched || is_touched(b, &b->v[k]);
		b->v[k].leave = true;
	}
	s->others = nested;
	if (touched && s->before)
		stuck(b, rel_of(s),
		      nested ? "another subvolume lies there now; move it away first"
			     : "was another subvolume, of which no snapshot holds anything");
	return k;
}

/* Has the command changed anything that the mount @edge covers now? */
static bool changed_below(const struct back *b, const struct ck_entry *edge)
{
	const struct side before = { &b->t.covered, b->t.layer.past };
	const struct side end = { &b->end_covered, b->end.root };
	size_t n = 0, found = 0;

	for (size_t i = 0; i < b->end_covered.n; i++)
		found += path_within(b->end_covered.v[i]->rel, edge->rel);
	for (size_t i = 0; i < b->t.covered.n; i++) {
		const struct ck_entry *en = b->t.covered.v[i];

		if (!path_within(en->rel, edge->rel))
			continue;
		n++;
		/* Without the END snapshot only a directory that was empty is known to be safe. */
		if (b->end.root < 0 && strcmp(en->rel, edge->rel) == 0)
			continue;
		if (b->end.root < 0 ||
		    !is_alike(&before, en, &end, ck_find(end.s, 0, en->rel)))
			return true;
	}
	return b->end.root >= 0 && n != found;
}

/* Both states, path by path. */
static void gather(struct back *b)
{
	const struct ck_state *x = &b->t.before, *y = &b->t.now;
	size_t i = 0, k = 0;

	b->v = xcalloc(x->n + y->n + 1, sizeof(*b->v));
	while (i < x->n || k < y->n) {
		int order = i >= x->n	? 1
			    : k >= y->n ? -1
					: ck_order(0, x->v[i]->rel, 0, y->v[k]->rel);
		struct spot *s = &b->v[b->n++];

		if (order <= 0)
			s->before = x->v[i++];
		if (order >= 0)
			s->now = y->v[k++];
	}
}

static struct spot *parent_of(struct back *b, const char *rel)
{
	const char *slash = strrchr(rel, '/');
	AUTO_FREE char *up = slash ? xstrndup(rel, (size_t)(slash - rel)) : xstrdup("");
	size_t lo = 0, hi = b->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = ck_order(0, rel_of(&b->v[mid]), 0, up);

		if (c == 0)
			return &b->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* An object that stays needs the directory around it. */
static int hold(struct back *b, struct spot *s, struct err *e)
{
	struct spot *up = *rel_of(s) ? parent_of(b, rel_of(s)) : NULL;

	if (!up || !s->leave || !s->now || up->leave || is_dir(up->before))
		return 0;
	if (up->before && s->others &&
	    ask(b, s, "lies where a directory is to be a file again", e) < 0)
		return -1;
	if (s->leave)
		up->leave = true;
	return 0;
}

/* So does what comes back. */
static void make_room(struct back *b, struct spot *s)
{
	struct spot *up = *rel_of(s) ? parent_of(b, rel_of(s)) : NULL;

	if (!up || s->leave || !s->before || !up->leave || is_dir(up->now))
		return;
	if (!up->now) {
		up->leave = false;
		return;
	}
	s->leave = true;
	stuck(b, rel_of(s), "lies where others have put something else than a directory");
}

/* The directories above a mount or another subvolume stay: the rollback removes neither. */
static void hold_edge(struct back *b, const char *rel)
{
	struct spot *up = parent_of(b, rel);

	for (; up && is_dir(up->now) && !is_dir(up->before);
	     up = parent_of(b, rel_of(up))) {
		up->leave = true;
		if (up->before)
			stuck(b, rel_of(up),
			      "holds a mount or another subvolume by now; move it away "
			      "first");
	}
}

static void hold_edges(struct back *b)
{
	for (size_t i = 0; i < b->t.edges.n; i++) {
		const struct ck_entry *edge = b->t.edges.v[i];

		hold_edge(b, edge->rel);
		if (edge->flags & CK_MOUNT && changed_below(b, edge))
			stuck(b, edge->rel,
			      "something is mounted there now; unmount it first");
	}
	for (size_t i = 0; i < b->n; i++)
		if (is_edge(b->v[i].now))
			hold_edge(b, rel_of(&b->v[i]));
}

static int decide_all(struct back *b, struct err *e)
{
	for (size_t i = 0; i < b->n;) {
		struct spot *s = &b->v[i];

		if (is_edge(s->before) || is_edge(s->now))
			i = decide_edge(b, i);
		else if (decide(b, &b->v[i++], e) < 0)
			return -1;
	}
	hold_edges(b);
	for (size_t i = b->n; i > 0; i--) {
		if (hold(b, &b->v[i - 1], e) < 0)
			return -1;
		make_room(b, &b->v[i - 1]);
	}
	for (size_t i = 0; i < b->n; i++)
		b->g->kept += b->v[i].others && b->v[i].leave && b->v[i].now;
	return 0;
}

static int open_sides(struct back *b, struct err *e)
{
	if (trees_open(b->rec, -1, &b->t, e) < 0)
		return -1;
	b->before = (struct side){ &b->t.before, b->t.layer.past };
	b->now = (struct side){ &b->t.now, b->t.layer.live };
	b->end = (struct side){ &b->end_state, trees_past(b->rec, END) };
	b->after = (struct side){ &b->after_state, trees_past(b->rec, AFTER) };
	if (b->end.root >= 0 &&
	    trees_scan(&b->t, b->end.root, &b->end_state, &b->end_covered, e) < 0)
		return -1;
	if (b->after.root >= 0 &&
	    trees_scan(&b->t, b->after.root, &b->after_state, NULL, e) < 0)
		return -1;
	return 0;
}

static void back_close(struct back *b)
{
	ck_state_free(&b->end_state);
	ck_state_free(&b->after_state);
	ck_state_free(&b->end_covered);
	cleanup_close(&b->end.root);
	cleanup_close(&b->after.root);
	free(b->v);
	trees_close(&b->t);
}

static bool any_stuck(const struct path_notes *n)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->v[i].stuck)
			return true;
	return false;
}

static int refuse(const struct back *b, struct err *e)
{
	uint64_t n = b->g->conflicts.n + b->g->conflicts.more;

	const char *paths = n == 1 ? "path" : "paths";
	long long id = b->rec->id;

	if (b->end.root < 0)
		return err_set(
			e, ERR_CONFLICT,
			"nobody saw the end of t%lld: %llu %s may be somebody else's "
			"work; nothing was done",
			id, (unsigned long long)n, paths);
	if (any_stuck(&b->g->conflicts))
		return err_set(e, ERR_CONFLICT,
			       "%llu %s cannot be made what %s before t%lld; nothing was "
			       "done",
			       (unsigned long long)n, paths,
			       n == 1 ? "it was" : "they were", id);
	return err_set(e, ERR_CONFLICT,
		       "%llu %s that t%lld changed %s changed again since it ended; "
		       "nothing was done",
		       (unsigned long long)n, paths, id, n == 1 ? "was" : "were");
}

static int restore(struct back *b, struct err *e)
{
	/* Contents come from the snapshot. */
	struct ck_layer l = b->t.layer;
	struct ck_layers one = { &l, 1 };
	struct ck_state target = { 0 };
	int x;

	l.up = b->t.layer.live;
	l.live = b->t.layer.past;
	l.shared = true;
	for (size_t i = 0; i < b->n; i++) {
		struct ck_entry *en = b->v[i].leave ? b->v[i].now : b->v[i].before;

		if (en)
			ck_state_add(&target, ck_ref(en));
	}
	x = ck_sync(&one, &b->t.now, &target, e);
	ck_state_free(&target);
	if (x == 0)
		return 0;
	err_wrap(e, "%s is not what it was yet", txn_in_place(b->rec));
	return e->hint[0] ? -1
			  : err_hint(e, "once more: stet rollback t%lld",
				     (long long)b->rec->id);
}

static int go_back(struct txn *t, struct give_up *g, struct err *e)
{
	struct back b = {
		.rec = &t->rec, .g = g, .end = { .root = -1 }, .after = { .root = -1 }
	};
	int r = open_sides(&b, e);

	if (r == 0) {
		gather(&b);
		r = decide_all(&b, e);
	}
	if (r == 0 && g->conflicts.n)
		r = refuse(&b, e);
	/* Not again if this was begun before: it would be of a tree that is half done. */
	if (r == 0 && !g->dry_run && b.after.root < 0)
		r = inplace_snapshot(&t->rec, AFTER, e);
	if (r == 0 && !g->dry_run)
		r = restore(&b, e);
	back_close(&b);
	return r;
}

int txn_give_up(struct home *h, struct txn *t, struct give_up *g, struct err *e)
{
	if (txn_in_place(&t->rec)) {
		if (txn_pending(h, t, e) < 0 || go_back(t, g, e) < 0)
			return -1;
	}
	return g->dry_run ? 0 : txn_rollback(h, t, e);
}
