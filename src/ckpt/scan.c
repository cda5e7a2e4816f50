/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "ckpt/object.h"
#include "ckpt/parts.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "ckpt/walk.h"
#include "ckpt/watch.h"
#include "layer/overlay.h"
#include "sys/btrfs.h"
#include "sys/fs.h"
#include "sys/ns.h"

/* How deep a tree may be: each level takes some of the stack. */
enum { DEPTH_MAX = 16000 };

static struct hardlink *twin_slot(struct hardlink *v, size_t cap, uint32_t layer,
				  uint64_t ino)
{
	size_t i = (ino * 0x9e3779b97f4a7c15ULL >> 20) & (cap - 1);

	while (v[i].ino && (v[i].ino != ino || v[i].layer != layer))
		i = (i + 1) & (cap - 1);
	return &v[i];
}

static struct hardlink *twin_of(struct walk *w, uint64_t ino)
{
	if (2 * w->ntwins >= w->cap) {
		size_t cap = w->cap ? 2 * w->cap : 64;
		struct hardlink *v = xcalloc(cap, sizeof(*v));

		for (size_t i = 0; i < w->cap; i++)
			if (w->twins[i].ino)
				*twin_slot(v, cap, w->twins[i].layer,
					   w->twins[i].ino) = w->twins[i];
		free(w->twins);
		w->twins = v;
		w->cap = cap;
	}
	return twin_slot(w->twins, w->cap, w->layer, ino);
}

static int open_content(int dir, const char *name, const struct ident *id,
			struct stat *st)
{
	AUTO_CLOSE int fd = -1;

	do {
		fd = fs_open_read(dir, name);
	} while (fd == -EACCES && ns_gain_override() == 0);
	if (fd < 0) {
		int r = TAKE_FD(fd);

		return r == -ELOOP || r == -ENXIO ? -ESTALE : r;
	}
	if (fstat(fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_ino != id->ino)
		return -ESTALE;
	return TAKE_FD(fd);
}

static bool hint_fits(const struct ck_entry *hint, const struct ck_entry *en)
{
	return hint && hint->id.mode == en->id.mode && hint->id.size == en->id.size &&
	       hint->id.mtime == en->id.mtime && hint->obj &&
	       (hint->id.nlink > 1) == (en->id.nlink > 1);
}

/* Objects tell names of one inode from those of another with the same content. */
static bool may_share(const struct ck_entry *prev, const struct ck_entry *en)
{
	return prev && prev->obj && prev->id.size == en->id.size &&
	       S_ISREG(prev->id.mode) &&
	       (en->id.nlink == 1 || (prev->id.ino == en->id.ino && prev->id.nlink > 1));
}

/* The same for two files of a tree and its snapshot, and for the names of one, or another. */
static uint64_t version_of(const struct ident *id)
{
	uint64_t x = id->ino * 0x9e3779b97f4a7c15ULL ^ (uint64_t)id->ctime;

	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
	return (x ^ x >> 32) | 1;
}

static int keep(struct walk *w, int in, const struct stat *st, struct ck_entry *en)
{
	int r = ck_keep(&w->pack, w->l->objects, in, st, (size_t)en->id.size, &en->obj);

	if (r == 0) {
		w->s->copied++;
		w->s->bytes += en->id.size;
	}
	return r;
}

/* Content of a file that is new or may have changed; @prev: what it was, or NULL. */
static int keep_content(struct walk *w, int dir, const char *name,
			const struct ck_entry *prev, const struct ck_entry *hint,
			struct ck_entry *en)
{
	AUTO_CLOSE int in = -1;
	struct hardlink *twin = NULL;
	struct stat st;
	int r = 0;

	if (w->s->whole) {
		en->obj = version_of(&en->id);
		return 0;
	}
	if (en->id.nlink > 1) {
		twin = twin_of(w, en->id.ino);
		/* Changed between its two names: it will be looked at again. */
		if (twin->ino && twin->ctime != en->id.ctime)
			return -ESTALE;
		if (twin->ino) {
			en->obj = twin->obj;
			return 0;
		}
	}
	if (!w->s->copy && !(prev && prev->obj))
		return 0;
	if (hint_fits(hint, en)) {
		en->obj = hint->obj;
	} else if (S_ISREG(en->id.mode) && (en->id.size || twin)) {
		in = open_content(dir, name, &en->id, &st);
		if (in < 0)
			return in;
		r = may_share(prev, en) ? ck_has_content(w->l, prev, in) : 0;
		if (r > 0)
			en->obj = prev->obj;
		else if (r == 0 && w->s->copy)
			r = keep(w, in, &st, en);
	} else if (twin) {
		r = ck_new_number(&en->obj);
	}
	if (r >= 0 && twin && en->obj) {
		*twin = (struct hardlink){ en->id.ino, en->obj, en->id.ctime, w->layer };
		w->ntwins++;
	}
	return r < 0 ? r : 0;
}

int ck_pack(int dir, const char *name, struct buf *out)
{
	AUTO_BUF struct buf list = BUF_INIT, value = BUF_INIT;
	int r;

	buf_reset(out);
	r = fs_xattr_list(dir, name, &list);
	for (const char *a = buf_str(&list); r == 0 && a < buf_str(&list) + list.len;
	     a += strlen(a) + 1) {
		uint32_t n[2];

		/* Those of the user class are for who may read the file. */
		do {
			r = fs_xattr_get(dir, name, a, &value);
		} while (r == -EACCES && ns_gain_override() == 0);
		if (r == -ENODATA) {
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		n[0] = (uint32_t)strlen(a) + 1;
		n[1] = (uint32_t)value.len;
		buf_add(out, n, sizeof(n));
		buf_add(out, a, n[0]);
		buf_add(out, buf_str(&value), n[1]);
	}
	return r;
}

static int64_t stamp(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000000000 + t->tv_nsec;
}

struct where {
	uint64_t dev;
	bool mount; /* the object is the root of a mount */
};

static int look(int dir, const char *name, struct ck_entry *en, struct where *at)
{
	struct statx sx;

	do {
		if (statx(dir, name,
			  AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH,
			  STATX_BASIC_STATS | STATX_BTIME, &sx) == 0) {
			en->id = (struct ident){
				.ino = sx.stx_ino,
				.btime = sx.stx_mask & STATX_BTIME ? stamp(&sx.stx_btime)
								   : 0,
				.mode = sx.stx_mode,
				.uid = sx.stx_uid,
				.gid = sx.stx_gid,
				.nlink = sx.stx_nlink,
				.size = S_ISDIR(sx.stx_mode) ? 0 : sx.stx_size,
				.mtime = stamp(&sx.stx_mtime),
				.ctime = stamp(&sx.stx_ctime),
			};
			at->dev = makedev(sx.stx_dev_major, sx.stx_dev_minor);
			at->mount = sx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
			en->rdev = S_ISCHR(sx.stx_mode) || S_ISBLK(sx.stx_mode)
					   ? makedev(sx.stx_rdev_major, sx.stx_rdev_minor)
					   : 0;
			return 0;
		}
	} while (errno == EACCES && ns_gain_override() == 0);
	return -errno;
}

static bool is_opaque(const struct buf *packed)
{
	const char *p = buf_str(packed), *end = p + packed->len;
	uint32_t n[2];

	while ((size_t)(end - p) >= sizeof(n)) {
		memcpy(n, p, sizeof(n));
		p += sizeof(n);
		if (strcmp(p, OVERLAY_OPAQUE) == 0)
			return n[1] == 1 && p[n[0]] == 'y';
		p += n[0] + n[1];
	}
	return false;
}

/* The entry of the last state for the path at hand. States are in the order of the walk. */
static struct ck_entry *in_state(const struct ck_state *s, size_t *cursor, uint32_t layer,
				 const char *rel)
{
	int c;

	for (; s && *cursor < s->n; (*cursor)++) {
		c = ck_order(s->v[*cursor]->layer, s->v[*cursor]->rel, layer, rel);
		if (c >= 0)
			return c == 0 ? s->v[*cursor] : NULL;
	}
	return NULL;
}

/* A writer of whom we do not know may still be at it: the times of a file change before it does. */
static bool is_doubtful(const struct walk *w, const struct ck_entry *prev)
{
	return prev->flags & CK_SUSPECT ||
	       (prev->flags & CK_EARLY && S_ISREG(prev->id.mode) && w->s->doubt &&
		prev->id.ctime >= w->s->doubt);
}

static bool untouched(const struct walk *w, const struct ck_entry *prev,
		      const struct ck_entry *en)
{
	return prev && !is_doubtful(w, prev) && prev->id.ino == en->id.ino &&
	       prev->id.ctime == en->id.ctime && prev->id.mode == en->id.mode &&
	       prev->id.mtime == en->id.mtime && prev->id.size == en->id.size;
}

/* Did we put a file back whose attributes were what they were to be? Then they still are. */
static bool kept_xattrs(const struct ck_entry *prev, const struct ck_entry *hint,
			const struct ck_entry *en)
{
	return hint_fits(hint, en) && S_ISREG(en->id.mode) && prev &&
	       S_ISREG(prev->id.mode) && prev->id.ino == en->id.ino &&
	       prev->nxattrs == hint->nxattrs &&
	       (!hint->nxattrs || memcmp(prev->xattrs, hint->xattrs, hint->nxattrs) == 0);
}

/* What could change once more within the same tick of the clock shows no other time. */
static int fill_in(struct walk *w, int dir, const char *name, const struct ck_entry *prev,
		   const struct ck_entry *hint, int64_t now, struct ck_entry *en)
{
	bool content = !S_ISDIR(en->id.mode) && !ck_is_whiteout(en);
	int r = 0;

	en->flags = en->id.ctime >= now || w->forced ? CK_SUSPECT : 0;
	en->flags |= w->s->early ? CK_EARLY : 0;
	buf_reset(&w->xattrs);
	buf_reset(&w->link);
	if (w->s->glance) {
		en->xattrs = en->link = "";
		return 0;
	}
	if (kept_xattrs(prev, hint, en))
		buf_add(&w->xattrs, hint->xattrs, hint->nxattrs);
	else if (S_ISREG(en->id.mode) || S_ISDIR(en->id.mode))
		r = ck_pack(dir, name, &w->xattrs);
	if (r == 0 && S_ISDIR(en->id.mode) &&
	    (is_opaque(&w->xattrs) || (w->s->whole && !*en->rel)))
		en->flags |= CK_OPAQUE;
	if (r == 0 && S_ISLNK(en->id.mode)) {
		r = fs_readlink(dir, name, &w->link);
		if (r == -EINVAL) /* it was one */
			r = -ESTALE;
	}
	en->xattrs = buf_str(&w->xattrs);
	en->nxattrs = w->xattrs.len;
	en->link = buf_str(&w->link);
	if (r == 0 && content)
		r = keep_content(w, dir, name, prev, hint, en);
	return r;
}

/*
 * What has not changed. Of several names of a file some may have been looked at before it got
 * another, and then are looked at anew: they must not become two files.
 */
static struct ck_entry *as_before(struct walk *w, struct ck_entry *prev)
{
	struct ck_entry en = *prev;
	struct hardlink *twin;

	if (S_ISDIR(prev->id.mode) || prev->id.nlink < 2 || !prev->obj || w->s->whole)
		return ck_ref(prev);
	twin = twin_of(w, prev->id.ino);
	if (!twin->ino) {
		*twin = (struct hardlink){ prev->id.ino, prev->obj, prev->id.ctime,
					   w->layer };
		w->ntwins++;
	}
	if (twin->obj == prev->obj)
		return ck_ref(prev);
	en.obj = twin->obj;
	return ck_entry_new(&en);
}

/* A snapshot holds a stub, an empty directory, in the place of every nested subvolume. */
static bool is_edge(const struct walk *w, const struct ck_entry *en,
		    const struct where *at)
{
	return w->s->whole && *en->rel &&
	       (at->mount || at->dev != w->dev || en->id.ino == BTRFS_STUB ||
		(w->s->edge && w->s->edge(w->s->edge_arg, en->rel, &en->id)));
}

/*
 * A nested subvolume and its stub in a snapshot must compare as equal, and a directory as different
 * from both: so the attributes are made up, with an xattr that directories do not have.
 */
static void mark_edge(struct walk *w, struct ck_entry *en, bool mount)
{
	static const char name[] = "user.stet.not-entered";
	const uint32_t n[2] = { sizeof(name), 0 };

	buf_reset(&w->xattrs);
	buf_add(&w->xattrs, n, sizeof(n));
	buf_add(&w->xattrs, name, sizeof(name));
	en->id = (struct ident){ .ino = en->id.ino, .mode = S_IFDIR | 0755, .nlink = 1 };
	en->flags = CK_EDGE | (mount ? CK_MOUNT : 0);
	en->rdev = 0;
	en->link = "";
	en->xattrs = buf_str(&w->xattrs);
	en->nxattrs = w->xattrs.len;
}

int walk_visit(struct walk *w, int dir, const char *name)
{
	struct ck_entry en = { .layer = w->layer, .rel = buf_str(&w->rel) };
	struct ck_entry *prev = in_state(w->s->prev, &w->cursor, w->layer, en.rel);
	const struct ck_entry *hint = in_state(w->s->hint, &w->hinted, w->layer, en.rel);
	int64_t now = clock_ns(CLOCK_REALTIME_COARSE);
	struct where at = { 0 };
	int r = look(dir, name, &en, &at);

	if (r == 0 && !w->forced && untouched(w, prev, &en)) {
		ck_state_add(w->out, as_before(w, prev));
		return S_ISDIR(en.id.mode);
	}
	if (r == 0 && w->s->whole && !*en.rel)
		w->dev = at.dev;
	if (r == 0 && is_edge(w, &en, &at)) {
		mark_edge(w, &en, at.mount);
		ck_state_add(w->out, ck_entry_new(&en));
		return 0;
	}
	if (r == 0)
		r = fill_in(w, dir, name, prev, hint, now, &en);
	/* Changed while it was read: it comes with the rest, if anybody tells what changes. */
	if (r == -ESTALE && w->s->watch)
		ck_watch_note(w->s->watch, w->layer, en.rel);
	if (r == -ENOENT || r == -ESTALE)
		return 0;
	if (r < 0)
		return ck_fail(w->l, en.rel, r, "keep", w->e);
	ck_state_add(w->out, ck_entry_new(&en));
	return S_ISDIR(en.id.mode);
}

static int open_dir(int dir, const char *name)
{
	int fd;

	do {
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} while (fd < 0 && errno == EACCES && ns_gain_override() == 0);
	return fd < 0 ? -errno : fd;
}

/* What is in it is read after this. It has been looked at before, and may have changed since. */
static void watch_dir(struct walk *w, int fd)
{
	const struct ck_entry *seen = w->out->v[w->out->n - 1];
	struct ck_entry now;
	struct where at;

	ck_watch_dir(w->s->watch, fd, w->layer, buf_str(&w->rel));
	if (seen->flags & CK_SUSPECT || look(fd, "", &now, &at) < 0 ||
	    now.id.ctime != seen->id.ctime)
		ck_watch_note(w->s->watch, w->layer, buf_str(&w->rel));
}

/* Goes into @l, whose descriptor is open. The one that is then too far above is closed. */
static int enter(struct walk *w, struct scan_level *l, struct scan_level **was)
{
	struct scan_level **slot = &w->open[w->nlevels++ % OPEN_LEVELS];
	struct stat st;

	*was = *slot;
	if (*was) {
		cleanup_close(&(*was)->fd);
		(*was)->fd = -1;
	}
	*slot = l;
	l->up = w->deepest;
	w->deepest = l;
	if (fstat(l->fd, &st) < 0)
		return -errno;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

/* Comes out of @l; the one above is read on, if ".." is still where we came from. */
static int leave(struct walk *w, struct scan_level *l, struct scan_level *was)
{
	struct scan_level *up = l->up;
	struct stat st;
	int r = 0;

	w->open[--w->nlevels % OPEN_LEVELS] = was;
	w->deepest = up;
	if (up && up->fd < 0) {
		up->fd = openat(l->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (up->fd < 0 || fstat(up->fd, &st) < 0)
			r = -errno;
		else if (st.st_dev != up->dev || st.st_ino != up->ino)
			r = -ESTALE;
	}
	return r;
}

static int read_level(struct walk *w, struct scan_level *l, unsigned depth)
{
	size_t len = w->rel.len;
	struct fs_names names;
	int r = depth > DEPTH_MAX ? -ENAMETOOLONG : fs_names_read(l->fd, &names);

	/* Removed since it was opened. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return ck_fail(w->l, buf_str(&w->rel), r, "keep", w->e);
	for (size_t i = 0; i < names.n && r >= 0; i++) {
		if (len)
			buf_addc(&w->rel, '/');
		buf_adds(&w->rel, names.v[i]);
		r = walk_visit(w, l->fd, names.v[i]);
		if (r > 0)
			r = walk_dir(w, l->fd, names.v[i], depth + 1);
		buf_truncate(&w->rel, len);
	}
	fs_names_free(&names);
	return r < 0 ? -1 : 0;
}

int walk_dir(struct walk *w, int parent, const char *dirname, unsigned depth)
{
	struct scan_level l = { .fd = open_dir(parent, dirname) }, *was;
	int r, back;

	if (l.fd == -ENOENT || l.fd == -ENOTDIR || l.fd == -ELOOP)
		return 0;
	if (l.fd < 0)
		return ck_fail(w->l, buf_str(&w->rel), l.fd, "keep", w->e);
	if (w->s->watch)
		watch_dir(w, l.fd);
	r = enter(w, &l, &was);
	r = r < 0 ? ck_fail(w->l, buf_str(&w->rel), r, "keep", w->e)
		  : read_level(w, &l, depth);
	back = leave(w, &l, was);
	cleanup_close(&l.fd);
	if (r == 0 && back < 0)
		return ck_fail(w->l, buf_str(&w->rel), back, "keep", w->e);
	return r;
}

int walk_end_pack(struct walk *w)
{
	int r = ck_end_pack(&w->pack);

	return r < 0 ? ck_fail(w->l, "", r, "keep", w->e) : 0;
}

void walk_free(struct walk *w)
{
	buf_free(&w->rel);
	buf_free(&w->xattrs);
	buf_free(&w->link);
	free(w->twins);
	ck_free_pack(&w->pack);
}

int ck_scan(struct ck_scan *s, struct ck_state *out, struct err *e)
{
	struct walk w = { .s = s, .out = out, .e = e, .pack.fd = -1 };
	int r = 0;

	*out = (struct ck_state){ 0 };
	for (size_t i = 0; i < s->layers->n && r >= 0; i++) {
		w.l = &s->layers->v[i];
		w.layer = (uint32_t)i;
		if (w.l->up < 0)
			continue;
		buf_reset(&w.rel);
		buf_add(&w.rel, "", 0);
		r = walk_visit(&w, w.l->up, ".");
		if (r > 0)
			r = walk_dir(&w, w.l->up, ".", 0);
		if (r >= 0)
			r = walk_end_pack(&w);
	}
	walk_free(&w);
	if (r < 0)
		ck_state_free(out);
	return r < 0 ? -1 : 0;
}
