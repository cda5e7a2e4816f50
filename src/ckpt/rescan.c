/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "ckpt/rescan.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "ckpt/walk.h"
#include "sys/fs.h"

/* Looks again at a few paths of a state that is known otherwise. */

void ck_paths_add(struct ck_paths *p, uint32_t layer, const char *rel, enum ck_again how)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 16;
		p->v = xrealloc(p->v, p->cap * sizeof(*p->v));
	}
	p->v[p->n++] = (struct ck_path){ layer, how, xstrdup(rel) };
}

void ck_paths_free(struct ck_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].rel);
	free(p->v);
	*p = (struct ck_paths){ 0 };
}

/* Sorts by path; of one path the most thorough wish comes first. */
static int by_path(const void *a, const void *b)
{
	const struct ck_path *x = a, *y = b;
	int c = ck_order(x->layer, x->rel, y->layer, y->rel);

	return c ? c : (int)y->how - (int)x->how;
}

static int order(const struct ck_entry *en, const struct ck_path *p)
{
	return ck_order(en->layer, en->rel, p->layer, p->rel);
}

static bool is_at(const struct ck_entry *en, const struct ck_path *p)
{
	return order(en, p) == 0;
}

static bool is_below(uint32_t layer, const char *rel, const struct ck_path *top)
{
	size_t n = strlen(top->rel);

	return layer == top->layer &&
	       (!n || (strncmp(rel, top->rel, n) == 0 && rel[n] == '/'));
}

/* Whiteouts are hard links of one inode and have no content to share. */
static bool has_names(const struct ck_entry *en)
{
	return !S_ISDIR(en->id.mode) && en->id.nlink > 1 && !ck_is_whiteout(en);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A write through one name of an inode changes its other names, too. */
static void add_twins(const struct ck_state *state, struct ck_paths *paths)
{
	AUTO_FREE uint64_t *inodes = xcalloc(paths->n + 1, sizeof(*inodes));
	size_t n = 0;

	for (size_t i = 0; i < paths->n; i++) {
		const struct ck_path *p = &paths->v[i];
		const struct ck_entry *en = p->how == CK_FORCED
						    ? ck_find(state, p->layer, p->rel)
						    : NULL;

		if (en && has_names(en))
			inodes[n++] = en->id.ino;
	}
	if (!n)
		return;
	qsort(inodes, n, sizeof(*inodes), by_number);
	/* An inode number of another layer may be another file: it is read in vain. */
	for (size_t i = 0; i < state->n; i++)
		if (has_names(state->v[i]) &&
		    bsearch(&state->v[i]->id.ino, inodes, n, sizeof(*inodes), by_number))
			ck_paths_add(paths, state->v[i]->layer, state->v[i]->rel,
				     CK_FORCED);
}

struct again {
	struct walk w;
	const struct ck_state *was;
	size_t at; /* index of the next entry in @was */
	const struct ck_path
		*top; /* a path that was scanned with everything below it; NULL: none */
};

static unsigned depth_of(const char *rel)
{
	unsigned n = *rel != '\0';

	for (; *rel; rel++)
		n += *rel == '/';
	return n;
}

/*
 * Handles one path: replaces its entries in the state by what is there now. 1: a file with
 * several names is among them.
 */
static int replace(struct again *a, const struct ck_path *p, int dir, const char *base)
{
	struct walk *w = &a->w;
	const size_t first = w->out->n;
	const struct ck_entry *old = NULL;
	bool names = false;
	int r = 0;

	if (a->at < a->was->n && is_at(a->was->v[a->at], p))
		old = a->was->v[a->at++];
	if (dir >= 0)
		r = walk_visit(w, dir, base);
	if (r < 0)
		return -1;
	/*
	 * If the object has changed its type or is gone, everything recorded below it is gone.
	 */
	if (p->how == CK_BENEATH || !old || w->out->n == first ||
	    S_ISDIR(old->id.mode) != (r > 0)) {
		a->top = p;
		for (; a->at < a->was->n &&
		       is_below(a->was->v[a->at]->layer, a->was->v[a->at]->rel, p);
		     a->at++)
			names |= has_names(a->was->v[a->at]);
		if (r > 0 && walk_dir(w, dir, base, depth_of(p->rel)) < 0)
			return -1;
	}
	names |= old && has_names(old);
	for (size_t i = first; i < w->out->n; i++)
		names |= has_names(w->out->v[i]);
	/*
	 * A removed name may have been one of several of an inode; the kernel does not tell of
	 * which.
	 */
	return (names && !(p->how == CK_FORCED && old)) ||
	       (p->how == CK_ITSELF && !old && w->out->n == first);
}

static int look_at(struct again *a, const struct ck_path *p)
{
	struct walk *w = &a->w;
	const char *base = ".";
	AUTO_CLOSE int parent = -1;
	const struct ck_entry *old;

	while (a->at < a->was->n && order(a->was->v[a->at], p) < 0)
		ck_state_add(w->out, ck_ref(a->was->v[a->at++]));
	old = a->at < a->was->n ? a->was->v[a->at] : NULL;
	if (old && (!is_at(old, p) || !S_ISREG(old->id.mode)))
		old = NULL;
	w->forced = old && (p->how == CK_FORCED || old->flags & CK_EARLY);
	buf_reset(&w->rel);
	buf_adds(&w->rel, p->rel);
	if (!*p->rel)
		return replace(a, p, w->l->up, base);
	parent = fs_open_parent(w->l->up, p->rel, &base);
	if (parent < 0 && parent != -ENOENT && parent != -ENOTDIR && parent != -ELOOP)
		return p->how !=
		       CK_FORCED; /* a path that cannot be reached keeps its entry */
	return replace(a, p, parent, base);
}

static int enter_layer(struct again *a, const struct ck_layers *layers, uint32_t layer)
{
	struct walk *w = &a->w;

	if (w->l == &layers->v[layer])
		return 0;
	if (w->l && walk_end_pack(w) < 0)
		return -1;
	w->layer = layer;
	w->l = &layers->v[layer];
	return 0;
}

int ck_rescan(struct ck_scan *s, struct ck_paths *paths, struct ck_state *state,
	      struct err *e)
{
	struct ck_state out = { 0 };
	struct ck_scan sub = { .layers = s->layers,
			       .prev = state,
			       .copy = s->copy,
			       .early = s->early,
			       .watch = s->watch };
	struct again a = { .w = { .s = &sub, .out = &out, .e = e, .pack.fd = -1 },
			   .was = state };
	const struct ck_path *last = NULL;
	int r = 0;

	add_twins(state, paths);
	if (paths->n)
		qsort(paths->v, paths->n, sizeof(*paths->v), by_path);
	for (size_t i = 0; i < paths->n && r == 0; i++) {
		const struct ck_path *p = &paths->v[i];

		if (s->layers->v[p->layer].up < 0 ||
		    (last && last->layer == p->layer && strcmp(last->rel, p->rel) == 0) ||
		    (a.top && is_below(p->layer, p->rel, a.top)))
			continue;
		r = enter_layer(&a, s->layers, p->layer);
		if (r == 0)
			r = look_at(&a, p);
		last = p;
	}
	if (r == 0 && a.w.l)
		r = walk_end_pack(&a.w);
	while (r == 0 && a.at < state->n)
		ck_state_add(&out, ck_ref(state->v[a.at++]));
	s->copied += sub.copied;
	s->bytes += sub.bytes;
	walk_free(&a.w);
	if (r != 0) {
		ck_state_free(&out);
		return r;
	}
	ck_state_free(state);
	*state = out;
	return 0;
}
