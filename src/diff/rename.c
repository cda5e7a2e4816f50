/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "diff/compare.h"
#include "diff/rename.h"
#include "diff/walk.h"
#include "sys/fs.h"

/*
 * Candidates are sorted by type and size; only where both sides have some are files read
 * and hashed. The hash is no proof: each pair is compared byte by byte before it is made.
 */
struct candidate {
	size_t index; /* in the list */
	bool deleted;
	bool used;
	mode_t type;
	off_t size;
	uint64_t hash;
	const char *base; /* last component */
	const char *path;
};

/* Root descriptors, opened when first needed: two per layer. */
struct roots {
	const struct change_layer *layers;
	int *fds;
	size_t n;
};

static void roots_free(struct roots *r)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	free(r->fds);
}

static int root_of(struct roots *r, size_t layer, bool host)
{
	size_t slot = layer * 2 + host;
	const struct change_layer *l = &r->layers[layer];
	const char *path = !host ? l->upper : l->base ? l->base : l->host;

	while (r->n <= slot) {
		r->fds = xrealloc(r->fds, (r->n + 1) * sizeof(*r->fds));
		r->fds[r->n++] = -1;
	}
	if (r->fds[slot] < 0)
		r->fds[slot] = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return r->fds[slot] < 0 ? -errno : r->fds[slot];
}

static int cmp_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Sorts equal content together, and equal base names next to each other within it. */
static int by_content(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int r = cmp_number(x->type, y->type);

	if (!r)
		r = cmp_number((uint64_t)x->size, (uint64_t)y->size);
	if (!r)
		r = cmp_number(x->hash, y->hash);
	if (!r)
		r = strcmp(x->base, y->base);
	return r ? r : strcmp(x->path, y->path);
}

static uint64_t mix(uint64_t h, const char *p, size_t n)
{
	while (n > 0) {
		uint64_t w = 0;
		size_t m = n < 8 ? n : 8;

		memcpy(&w, p, m);
		h = (h ^ w) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
		p += m;
		n -= m;
	}
	return h;
}

static int hash_file(int dir, const char *name, struct scratch *s, uint64_t *hash)
{
	AUTO_CLOSE int fd = compare_open(dir, name);
	ssize_t n;

	if (fd < 0)
		return TAKE_FD(fd);
	if (!s->block[0])
		s->block[0] = xmalloc(COMPARE_BLOCK);
	while ((n = read(fd, s->block[0], COMPARE_BLOCK)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			*hash = mix(*hash, s->block[0], (size_t)n);
	}
	return 0;
}

/* The directory and the name of the content; @dir is a new descriptor. */
static int locate(struct roots *roots, const struct change *c, bool deleted,
		  const char **base)
{
	int root = root_of(roots, c->layer, deleted);

	return root < 0 ? root : fs_open_parent(root, c->rel, base);
}

static int hash_content(struct roots *roots, const struct change_list *l,
			struct candidate *k, struct scratch *s)
{
	const char *base;
	AUTO_CLOSE int dir = locate(roots, &l->v[k->index].c, k->deleted, &base);
	int r;

	k->hash = 0;
	if (dir < 0)
		return TAKE_FD(dir);
	if (k->type == S_IFREG)
		return hash_file(dir, base, s, &k->hash);
	r = fs_readlink(dir, base, &s->text[0]);
	if (r == 0)
		k->hash = mix(0, buf_str(&s->text[0]), s->text[0].len);
	return r;
}

/* 1 if the content of both is the same. */
static int same(struct roots *roots, const struct change_list *l,
		const struct candidate *d, const struct candidate *a, struct scratch *s)
{
	const struct change *cd = &l->v[d->index].c, *ca = &l->v[a->index].c;
	const char *base_d, *base_a;
	AUTO_CLOSE int dir_d = locate(roots, cd, true, &base_d);
	AUTO_CLOSE int dir_a = locate(roots, ca, false, &base_a);
	struct object od = { dir_d, base_d, &cd->before };
	struct object oa = { dir_a, base_a, &ca->after };

	if (dir_d < 0 || dir_a < 0)
		return dir_d < 0 ? TAKE_FD(dir_d) : TAKE_FD(dir_a);
	return compare_content(&od, &oa, s);
}

static bool is_hard(int r)
{
	/* An object that cannot be read or is gone is no rename; other failures are errors. */
	return r < 0 && r != -EACCES && r != -EPERM && r != -ENOENT && r != -ESTALE &&
	       r != -ENOTDIR && r != -ELOOP && r != -EINVAL;
}

static int pair(struct roots *roots, struct change_list *l, struct candidate *d,
		struct candidate *a, struct scratch *s, struct err *e)
{
	int r = same(roots, l, d, a, s);

	if (is_hard(r))
		return walk_error(e, r, a->path);
	d->used = a->used = true;
	if (r != 1)
		return 0;
	l->v[a->index].renamed_from = d->index;
	l->v[d->index].renamed_away = true;
	return 0;
}

static struct candidate *next_free(struct candidate *k, struct candidate *end,
				   bool deleted)
{
	while (k < end && (k->used || k->deleted != deleted))
		k++;
	return k;
}

/* Pairs candidates of one hash: first those with equal base names, then the others in turn. */
static int pair_group(struct roots *roots, struct change_list *l, struct candidate *k,
		      struct candidate *end, struct scratch *s, struct err *e)
{
	int pass;

	for (pass = 0; pass < 2; pass++) {
		struct candidate *d = next_free(k, end, true);
		struct candidate *a = next_free(k, end, false);

		while (d < end && a < end) {
			int order = pass == 0 ? strcmp(d->base, a->base) : 0;

			if (order == 0 && pair(roots, l, d, a, s, e) < 0)
				return -1;
			if (order <= 0)
				d = next_free(d + 1, end, true);
			if (order >= 0)
				a = next_free(a + 1, end, false);
		}
	}
	return 0;
}

static size_t gather(const struct change_list *l, struct candidate *k)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		const struct change *c = &l->v[i].c;
		bool deleted = c->kind == CHANGE_DELETE;
		const struct stat *st = deleted ? &c->before : &c->after;
		const char *slash = strrchr(c->path, '/');

		if ((!deleted && c->kind != CHANGE_ADD) || c->was_hidden || c->was_closed)
			continue;
		if ((!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode)) || st->st_size == 0)
			continue;
		k[n++] = (struct candidate){
			.index = i,
			.deleted = deleted,
			.type = st->st_mode & S_IFMT,
			.size = st->st_size,
			.base = slash ? slash + 1 : c->path,
			.path = c->path,
		};
	}
	return n;
}

/* Hashes the files of one type and size, if there are any on both sides. */
static int hash_group(struct roots *roots, const struct change_list *l,
		      struct candidate *k, struct candidate *end, struct scratch *s,
		      struct err *e)
{
	size_t deleted = 0;
	struct candidate *p;

	for (p = k; p < end; p++)
		deleted += p->deleted;
	for (p = k; p < end; p++) {
		int r = 0;

		if (deleted == 0 || deleted == (size_t)(end - k))
			p->used = true;
		else if (end - k > 2) /* a lone pair is compared directly */
			r = hash_content(roots, l, p, s);
		if (is_hard(r))
			return walk_error(e, r, p->path);
		p->used = p->used || r < 0;
	}
	return 0;
}

static struct candidate *group_end(struct candidate *k, struct candidate *end, bool hash)
{
	struct candidate *p = k;

	while (p < end && p->type == k->type && p->size == k->size &&
	       (!hash || p->hash == k->hash))
		p++;
	return p;
}

int change_find_renames(const struct change_layer *layers, struct change_list *l,
			struct err *e)
{
	AUTO_FREE struct candidate *v = xcalloc(l->n, sizeof(*v));
	size_t n = gather(l, v);
	struct candidate *k, *next, *end = v + n;
	struct roots roots = { .layers = layers };
	struct scratch s = { 0 };
	int r = 0;

	qsort(v, n, sizeof(*v), by_content);
	for (k = v; r == 0 && k < end; k = next) {
		next = group_end(k, end, false);
		r = hash_group(&roots, l, k, next, &s, e);
	}
	qsort(v, n, sizeof(*v), by_content);
	for (k = v; r == 0 && k < end; k = next) {
		next = group_end(k, end, true);
		r = pair_group(&roots, l, k, next, &s, e);
	}
	roots_free(&roots);
	scratch_free(&s);
	return r;
}
