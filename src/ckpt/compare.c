/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ckpt/compare.h"
#include "ckpt/parts.h"
#include "ckpt/state.h"
#include "sys/fs.h"

/*
 * Compares two states as the inside sees them, by the rules of overlayfs: a name that is in no
 * upper shows the host's object, unless a directory above is opaque.
 */
struct level {
	const char *rel;
	struct ck_side a, b;
	bool a_shows,
		b_shows; /* does the host's directory show through, for names in it? */
};

struct compare {
	const struct ck_layers *layers;
	const struct ck_state *s[2];
	const char *const *paths;
	ck_diff_fn *fn;
	void *arg;
	struct err *e;
	uint32_t layer;
	struct level *stack;
	size_t depth, cap;
};

static const struct ck_layer *layer_of(const struct compare *c)
{
	return &c->layers->v[c->layer];
}

/* 1: the path is chosen; 0: not; -1: not itself, but something below may be. */
static int chosen(const struct compare *c, const char *rel)
{
	AUTO_FREE char *path = NULL;
	const char *top = layer_of(c)->path;
	bool above = false;
	size_t n, m;

	if (!c->paths)
		return 1;
	path = xasprintf("%s%s%s", strcmp(top, "/") == 0 ? "" : top, *rel ? "/" : "",
			 rel);
	n = strlen(path);
	for (const char *const *p = c->paths; *p; p++) {
		m = strcmp(*p, "/") == 0 ? 0 : strlen(*p);
		if (strncmp(path, *p, m) == 0 && (path[m] == '\0' || path[m] == '/'))
			return 1;
		above = above || (strncmp(path, *p, n) == 0 && (*p)[n] == '/');
	}
	return above ? -1 : 0;
}

static bool host_stat(const struct compare *c, const char *rel, struct stat *st)
{
	AUTO_CLOSE int dir = -1;
	const char *base;

	if (ck_hidden(layer_of(c), rel))
		return false;
	if (!*rel)
		return fstat(layer_of(c)->host, st) == 0;
	dir = fs_open_parent(layer_of(c)->host, rel, &base);
	return dir >= 0 && fstatat(dir, base, st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_dir(const struct ck_side *s, const struct stat *host)
{
	return s->seen == CK_UPPER ? S_ISDIR(s->e->id.mode)
				   : s->seen == CK_LOWER && S_ISDIR(host->st_mode);
}

/* What shows at a path, by its entry (or none) and by whether the host shows through. */
static struct ck_side side_of(const struct ck_entry *en, bool shows, bool host)
{
	struct ck_side s = { .seen = CK_ABSENT };

	if (en && !ck_is_whiteout(en)) {
		s.seen = CK_UPPER;
		s.e = en;
	} else if (!en && shows && host) {
		s.seen = CK_LOWER;
	}
	return s;
}

static bool same_side(const struct ck_side *a, const struct ck_side *b)
{
	if (a->seen != b->seen)
		return false;
	return a->seen != CK_UPPER || ck_same(a->e, b->e);
}

static int tell(struct compare *c, const char *rel, const struct ck_side *a,
		const struct ck_side *b, bool dir)
{
	struct ck_diff d = {
		.layer = c->layer, .rel = rel, .a = *a, .b = *b, .dir = dir
	};

	if (chosen(c, rel) != 1)
		return 0;
	return c->fn(c->arg, &d, c->e);
}

static void push(struct compare *c, const struct level *l)
{
	if (c->depth == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 32;
		c->stack = xrealloc(c->stack, c->cap * sizeof(*c->stack));
	}
	c->stack[c->depth++] = *l;
}

/*
 * A directory that is not chosen, but contains chosen paths, and does not exist now: the
 * directory itself is made, and the chosen objects of the host's.
 */
static int way(struct compare *c, const char *rel, const struct level *l)
{
	struct ck_diff d = {
		.layer = c->layer, .rel = rel, .a = l->a, .b = l->b, .way = true
	};
	AUTO_CLOSE int dir = -1;
	struct fs_names names;
	int r;

	if (l->a.seen != CK_ABSENT) {
		err_set(c->e, ERR_CONFLICT, "%s%s%s is not a directory any more",
			layer_of(c)->path, *rel ? "/" : "", rel);
		return err_hint(c->e, "restore it as a whole");
	}
	if (l->b.seen != CK_LOWER)
		return c->fn(c->arg, &d, c->e);
	dir = fs_open_beneath(layer_of(c)->host, rel, O_RDONLY | O_DIRECTORY);
	if (dir == -ENOTDIR || dir == -ELOOP)
		return 0; /* then no chosen path exists below */
	r = dir < 0 ? dir : fs_names_read(dir, &names);
	if (r < 0)
		return ck_fail(layer_of(c), rel, r, "read", c->e);
	r = c->fn(c->arg, &d, c->e);
	for (size_t i = 0; i < names.n && r == 0; i++) {
		AUTO_FREE char *path = xasprintf("%s/%s", rel, names.v[i]);
		int wanted = ck_hidden(layer_of(c), path) ? 0 : chosen(c, path);

		if (wanted > 0)
			r = tell(c, path, &l->a, &l->b, false);
		else if (wanted < 0)
			r = way(c, path, l);
	}
	fs_names_free(&names);
	return r;
}

/* Names of the host's directory that are in neither state and show on one side only. */
static int other_names(struct compare *c, const char *rel, const struct level *l)
{
	static const struct level back = { .b = { .seen = CK_LOWER } };
	static const struct ck_side lower = { .seen = CK_LOWER },
				    absent = { .seen = CK_ABSENT };
	AUTO_CLOSE int dir = -1;
	struct fs_names names;
	int r;

	dir = *rel ? fs_open_beneath(layer_of(c)->host, rel, O_RDONLY | O_DIRECTORY)
		   : openat(layer_of(c)->host, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	r = dir < 0 ? dir : fs_names_read(dir, &names);
	if (r < 0)
		return ck_fail(layer_of(c), rel, r, "read", c->e);
	for (size_t i = 0; i < names.n && r == 0; i++) {
		AUTO_FREE char *path = xasprintf("%s%s%s", rel, *rel ? "/" : "",
						 names.v[i]);

		if (ck_find(c->s[0], c->layer, path) ||
		    ck_find(c->s[1], c->layer, path) || ck_hidden(layer_of(c), path) ||
		    chosen(c, path) == 0)
			continue;
		if (chosen(c, path) < 0)
			r = l->b_shows ? way(c, path, &back) : 0;
		else
			r = tell(c, path, l->a_shows ? &lower : &absent,
				 l->b_shows ? &lower : &absent, false);
	}
	fs_names_free(&names);
	return r;
}

/* If both states have an entry that is no directory, the host's object is covered. */
static bool host_matters(const struct level *up, const struct ck_entry *x,
			 const struct ck_entry *y)
{
	if (x && y && !S_ISDIR(x->id.mode) && !S_ISDIR(y->id.mode))
		return false;
	return !up || up->a_shows || up->b_shows;
}

/* Compares a path that at least one of the states has. */
static int visit(struct compare *c, const char *rel, const struct ck_entry *x,
		 const struct ck_entry *y)
{
	const struct level *up = c->depth ? &c->stack[c->depth - 1] : NULL;
	struct level l = { .rel = rel };
	struct stat st = { 0 };
	bool host, da, db;
	int r = 0;

	host = host_matters(up, x, y) && host_stat(c, rel, &st);
	/* The root of a layer always exists: if it is in no list, it is as it was made. */
	l.a = side_of(x, !up || up->a_shows, host);
	l.b = side_of(y, !up || up->b_shows, host);
	da = is_dir(&l.a, &st);
	db = is_dir(&l.b, &st);
	if (!same_side(&l.a, &l.b))
		r = tell(c, rel, &l.a, &l.b, da && db);
	l.a_shows = da && (!up || up->a_shows) && host && S_ISDIR(st.st_mode) &&
		    !(x && x->flags & CK_OPAQUE);
	l.b_shows = db && (!up || up->b_shows) && host && S_ISDIR(st.st_mode) &&
		    !(y && y->flags & CK_OPAQUE);
	if (r == 0 && db && !da && chosen(c, rel) < 0)
		r = way(c, rel, &l);
	if (r == 0 && l.a_shows != l.b_shows &&
	    (da ? db || l.a.seen == CK_UPPER : l.b.seen == CK_UPPER))
		r = other_names(c, rel, &l);
	push(c, &l);
	return r;
}

static bool above(const char *dir, const char *rel)
{
	size_t len = strlen(dir);

	return !len || (strncmp(dir, rel, len) == 0 && rel[len] == '/');
}

int ck_compare(const struct ck_layers *layers, const struct ck_state *a,
	       const struct ck_state *b, const char *const *paths, ck_diff_fn *fn,
	       void *arg, struct err *e)
{
	struct compare c = { .layers = layers,
			     .s = { a, b },
			     .paths = paths,
			     .fn = fn,
			     .arg = arg,
			     .e = e,
			     .layer = UINT32_MAX };
	size_t i = 0, k = 0;
	int r = 0;

	while (r == 0 && (i < a->n || k < b->n)) {
		const struct ck_entry *x = i < a->n ? a->v[i] : NULL;
		const struct ck_entry *y = k < b->n ? b->v[k] : NULL;
		int order = !x	 ? 1
			    : !y ? -1
				 : ck_order(x->layer, x->rel, y->layer, y->rel);
		const struct ck_entry *any = order <= 0 ? x : y;

		if (any->layer >= layers->n) {
			r = err_set(e, ERR_CORRUPT, "a checkpoint speaks of layer %u",
				    any->layer);
			break;
		}
		if (any->layer != c.layer) {
			c.layer = any->layer;
			c.depth = 0;
		}
		while (c.depth && !above(c.stack[c.depth - 1].rel, any->rel))
			c.depth--;
		if (chosen(&c, any->rel) != 0)
			r = visit(&c, any->rel, order <= 0 ? x : NULL,
				  order >= 0 ? y : NULL);
		i += order <= 0;
		k += order >= 0;
	}
	free(c.stack);
	return r < 0 ? -1 : r;
}
