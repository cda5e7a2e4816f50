/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ckpt/compare.h"
#include "ckpt/pair.h"
#include "ckpt/parts.h"
#include "ckpt/place.h"
#include "ckpt/state.h"
#include "diff/change.h"
#include "layer/overlay.h"
#include "sys/fs.h"

struct pair {
	const struct ck_layers *layers;
	uint32_t layer;
	int before, after;
};

/* The directory for @rel, made where it is missing; both trees get the same directories. */
static int parent_in(int root, const char *rel, const char **base)
{
	AUTO_CLOSE int at = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *slash;

	while (at >= 0 && (slash = strchr(rel, '/'))) {
		AUTO_FREE char *name = xstrndup(rel, (size_t)(slash - rel));
		int next;

		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(at);
		at = next;
		rel = slash + 1;
	}
	*base = rel;
	return at < 0 ? -errno : TAKE_FD(at);
}

/*
 * Makes a directory. Attributes that would keep us from writing into it are left out; they are
 * few.
 */
static int put_dir(const struct ck_layer *l, const struct ck_side *s, const char *rel,
		   int dir, const char *base)
{
	struct ck_entry e;
	struct stat st;
	int r;

	if (mkdirat(dir, base, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (s->seen == CK_UPPER) {
		e = *s->e;
	} else {
		AUTO_CLOSE int from = -1;
		const char *name;

		from = fs_open_parent(l->host, rel, &name);
		if (from < 0 || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		e = (struct ck_entry){ .xattrs = "", .link = "", .rel = rel };
		ident_from(&st, &e.id);
	}
	e.id.mode |= 0700;
	r = ck_dress(l, &e, dir, base);
	return r;
}

static int put(struct pair *p, const struct ck_diff *d, const struct ck_side *s, int root,
	       bool after)
{
	struct ck_layer l = p->layers->v[d->layer];
	AUTO_CLOSE int dir = -1;
	const char *base = d->rel;
	int r;

	if (s->seen == CK_ABSENT && !after)
		return 0;
	dir = parent_in(root, d->rel, &base);
	/* A path below an object that is a directory on the other side only. */
	if (dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	if (dir < 0)
		return dir;
	l.merged = true;
	l.lax = true;
	if (!after && l.past >= 0)
		l.live = l.past;
	if (s->seen == CK_ABSENT)
		r = overlay_whiteout(dir, base);
	else if (d->dir || (s->seen == CK_UPPER && S_ISDIR(s->e->id.mode)))
		r = put_dir(&l, s, d->rel, dir, base);
	else if (s->seen == CK_UPPER)
		r = ck_place(&l, s->e, dir, base);
	else
		r = ck_place_host(&l, d->rel, dir, base);
	return r;
}

static int put_both(void *arg, const struct ck_diff *d, struct err *e)
{
	struct pair *p = arg;
	int r;

	if (d->layer != p->layer || !*d->rel)
		return 0;
	r = put(p, d, &d->a, p->before, false);
	if (r == 0)
		r = put(p, d, &d->b, p->after, true);
	return r < 0 ? ck_fail(&p->layers->v[d->layer], d->rel, r, "compare", e) : 0;
}

int ck_pair(const struct ck_layers *layers, const struct ck_state *a,
	    const struct ck_state *b, uint32_t layer, int before, int after,
	    struct err *e)
{
	struct pair p = { layers, layer, before, after };

	return ck_compare(layers, a, b, NULL, put_both, &p, e);
}

/* --- sums --- */

struct count {
	const struct ck_layers *layers;
	struct change_totals *t;
};

static uint64_t count_tree(int dir, const char *name, unsigned depth)
{
	AUTO_CLOSE int fd = depth > 200 ? -1 : fs_open_dir_here(dir, name, O_RDONLY);
	struct fs_names names;
	uint64_t n = 1;

	if (fd < 0 || fs_names_read(fd, &names) < 0)
		return n;
	for (size_t i = 0; i < names.n; i++)
		n += count_tree(fd, names.v[i], depth + 1);
	fs_names_free(&names);
	return n;
}

static uint64_t count_host(const struct ck_layer *l, const char *rel)
{
	AUTO_CLOSE int dir = -1;
	const char *base;

	dir = fs_open_parent(l->host, rel, &base);
	return dir < 0 ? 1 : count_tree(dir, base, 0);
}

static bool looks_same(const struct ident *a, const struct ident *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
	       (S_ISDIR(a->mode) || (a->size == b->size && a->mtime == b->mtime));
}

/* For the sums a copy with the attributes of the host's object counts as that object. */
static bool side_ident(const struct ck_layer *l, const struct ck_diff *d,
		       const struct ck_side *s, struct ident *id)
{
	AUTO_CLOSE int dir = -1;
	const char *base;
	struct stat st;

	if (s->seen == CK_UPPER) {
		*id = s->e->id;
		return true;
	}
	dir = fs_open_parent(l->host, d->rel, &base);
	if (dir < 0 || fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	ident_from(&st, id);
	return true;
}

static int count_one(void *arg, const struct ck_diff *d, struct err *e)
{
	struct count *c = arg;
	const struct ck_layer *l = &c->layers->v[d->layer];
	struct ident a, b;

	(void)e;
	if (!*d->rel)
		return 0;
	if (d->b.seen == CK_ABSENT) {
		c->t->deleted += d->a.seen == CK_LOWER ? count_host(l, d->rel) : 1;
		return 0;
	}
	if (d->a.seen == CK_ABSENT) {
		c->t->added += d->b.seen == CK_LOWER ? count_host(l, d->rel) : 1;
		if (d->b.seen == CK_UPPER && S_ISREG(d->b.e->id.mode))
			c->t->bytes += d->b.e->id.size;
		return 0;
	}
	if (side_ident(l, d, &d->a, &a) && side_ident(l, d, &d->b, &b) &&
	    looks_same(&a, &b) &&
	    (S_ISDIR(a.mode) || d->a.seen != CK_UPPER || d->b.seen != CK_UPPER ||
	     d->a.e->obj == d->b.e->obj))
		return 0;
	c->t->modified++;
	if (d->b.seen == CK_UPPER && S_ISREG(d->b.e->id.mode))
		c->t->bytes += d->b.e->id.size;
	return 0;
}

int ck_count(const struct ck_layers *layers, const struct ck_state *a,
	     const struct ck_state *b, struct change_totals *t, struct err *e)
{
	struct count c = { layers, t };

	*t = (struct change_totals){ 0 };
	return ck_compare(layers, a, b, NULL, count_one, &c, e);
}
