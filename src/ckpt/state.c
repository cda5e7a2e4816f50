/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "ckpt/parts.h"
#include "ckpt/state.h"

bool ck_is_whiteout(const struct ck_entry *e)
{
	return S_ISCHR(e->id.mode) && e->rdev == 0;
}

struct ck_entry *ck_entry_new(const struct ck_entry *from)
{
	size_t nrel = strlen(from->rel) + 1, nlink = strlen(from->link) + 1;
	struct ck_entry *e = xmalloc(sizeof(*e) + nrel + nlink + from->nxattrs + 1);
	char *p = (char *)(e + 1);

	*e = *from;
	e->refs = 1;
	e->rel = memcpy(p, from->rel, nrel);
	e->link = memcpy(p + nrel, from->link, nlink);
	p += nrel + nlink;
	if (from->nxattrs)
		memcpy(p, from->xattrs, from->nxattrs);
	e->xattrs = p;
	return e;
}

struct ck_entry *ck_ref(struct ck_entry *e)
{
	e->refs++;
	return e;
}

void ck_unref(struct ck_entry *e)
{
	if (e && --e->refs == 0)
		free(e);
}

bool ck_same(const struct ck_entry *a, const struct ck_entry *b)
{
	if (a == b)
		return true;
	return a->id.mode == b->id.mode && a->id.uid == b->id.uid &&
	       a->id.gid == b->id.gid && a->id.mtime == b->id.mtime &&
	       (S_ISDIR(a->id.mode) || a->id.size == b->id.size) && a->rdev == b->rdev &&
	       a->obj == b->obj && strcmp(a->link, b->link) == 0 &&
	       a->nxattrs == b->nxattrs &&
	       (!a->nxattrs || memcmp(a->xattrs, b->xattrs, a->nxattrs) == 0);
}

/* Like strcmp(), but the contents of a directory come right after it. */
static int path_order(const char *a, const char *b)
{
	unsigned char x, y;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	x = (unsigned char)*a;
	y = (unsigned char)*b;
	if (x == y)
		return 0;
	if (!x || !y)
		return x ? 1 : -1;
	if (x == '/' || y == '/')
		return x == '/' ? -1 : 1;
	return x < y ? -1 : 1;
}

int ck_order(uint32_t layer_a, const char *a, uint32_t layer_b, const char *b)
{
	if (layer_a != layer_b)
		return layer_a < layer_b ? -1 : 1;
	return path_order(a, b);
}

static int by_path(const void *a, const void *b)
{
	const struct ck_entry *x = *(struct ck_entry *const *)a;
	const struct ck_entry *y = *(struct ck_entry *const *)b;

	return ck_order(x->layer, x->rel, y->layer, y->rel);
}

void ck_state_add(struct ck_state *s, struct ck_entry *e)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		s->v = xrealloc(s->v, s->cap * sizeof(struct ck_entry *));
	}
	s->v[s->n++] = e;
}

void ck_state_sort(struct ck_state *s)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(struct ck_entry *), by_path);
}

void ck_state_free(struct ck_state *s)
{
	for (size_t i = 0; i < s->n; i++)
		ck_unref(s->v[i]);
	free(s->v);
	*s = (struct ck_state){ 0 };
}

struct ck_entry *ck_find(const struct ck_state *s, uint32_t layer, const char *rel)
{
	size_t lo = 0, hi = s ? s->n : 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = ck_order(s->v[mid]->layer, s->v[mid]->rel, layer, rel);

		if (c == 0)
			return s->v[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool ck_hidden(const struct ck_layer *l, const char *rel)
{
	const char *const *lists[] = { l->hidden, l->never };
	AUTO_FREE char *path = NULL;

	if ((!l->hidden || !*l->hidden) && (!l->never || !*l->never))
		return false;
	path = xasprintf("%s/%s", strcmp(l->path, "/") == 0 ? "" : l->path, rel);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (const char *const *p = lists[i]; p && *p; p++)
			if (path_within(path, *p))
				return true;
	return false;
}

int ck_fail(const struct ck_layer *l, const char *rel, int r, const char *what,
	    struct err *e)
{
	AUTO_BUF struct buf q = BUF_INIT;
	AUTO_FREE char *path = xasprintf(
		"%s%s%s", strcmp(l->path, "/") == 0 ? "" : l->path, *rel ? "/" : "", rel);
	size_t len = strlen(path), most = 400;

	text_quote(&q, len > most ? path + len - most : path, len > most ? most : len);
	if (q.len > 600)
		buf_truncate(&q, 600);
	err_sys(e, r, "cannot %s %s", what, buf_str(&q));
	if (r == -ENOSPC || r == -EDQUOT)
		err_hint(e, "free some space, or let old data go: stet prune");
	return -1;
}
