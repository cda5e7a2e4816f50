/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "ckpt/apply.h"
#include "ckpt/compare.h"
#include "ckpt/file.h"
#include "ckpt/object.h"
#include "ckpt/parts.h"
#include "ckpt/place.h"
#include "ckpt/state.h"
#include "layer/copy.h"
#include "layer/meta.h"
#include "sys/fs.h"
#include "sys/rmtree.h"

/* --- writing the steps down --- */

struct place {
	uint32_t layer;
	char *rel;
};

struct planner {
	const struct ck_layers *layers;
	const struct ck_state *now, *target;
	struct buf steps;
	uint64_t n;
	struct place *dirs; /* directories whose attributes are set at the end */
	size_t ndirs;
	const struct ck_entry *
		*made; /* names, made by earlier steps, of inodes with several names */
	size_t nmade;
	bool all; /* no paths were chosen */
	/* The last directory that is removed with everything beneath it. */
	uint32_t gone_layer;
	struct buf gone;
};

static void add_step(struct planner *p, enum ck_step kind, const struct ck_entry *e)
{
	buf_addc(&p->steps, (char)kind);
	ck_encode(&p->steps, e);
	p->n++;
}

static void add_plain(struct planner *p, enum ck_step kind, uint32_t layer,
		      const char *rel, const char *link)
{
	struct ck_entry e = { .layer = layer, .rel = rel, .link = link, .xattrs = "" };

	add_step(p, kind, &e);
}

static void dress_later(struct planner *p, uint32_t layer, const char *rel, size_t len)
{
	if ((p->ndirs & (p->ndirs - 1)) == 0)
		p->dirs = xrealloc(p->dirs,
				   (p->ndirs ? 2 * p->ndirs : 16) * sizeof(*p->dirs));
	p->dirs[p->ndirs++] = (struct place){ layer, xstrndup(rel, len) };
}

/* Does the file stay the same inode, with other attributes? */
static bool stays(const struct ck_entry *now, const struct ck_entry *target)
{
	return now->obj && now->obj == target->obj && S_ISREG(now->id.mode) &&
	       S_ISREG(target->id.mode) && (now->id.nlink > 1) == (target->id.nlink > 1);
}

static const struct ck_entry *made_name(const struct planner *p, const struct ck_entry *e)
{
	for (size_t i = 0; i < p->nmade; i++)
		if (p->made[i]->obj == e->obj && p->made[i]->layer == e->layer)
			return p->made[i];
	return NULL;
}

/*
 * Another name of the same inode: one that an earlier step makes, or one that is in place and
 * stays.
 */
static const struct ck_entry *other_name(const struct planner *p,
					 const struct ck_entry *e)
{
	const struct ck_entry *made = made_name(p, e);

	for (size_t i = 0; !made && i < p->target->n; i++) {
		const struct ck_entry *t = p->target->v[i];
		const struct ck_entry *n;

		if (t == e || t->obj != e->obj || t->layer != e->layer)
			continue;
		n = ck_find(p->now, t->layer, t->rel);
		if (n && (ck_same(n, t) || stays(n, t)))
			return t;
	}
	return made;
}

static void plan_make(struct planner *p, const struct ck_diff *d)
{
	const struct ck_entry *b = d->b.e, *a = d->a.seen == CK_UPPER ? d->a.e : NULL;
	const struct ck_entry *other;

	/* The file can be written in place, unless its other names become another file. */
	if (a && stays(a, b) && (b->id.nlink == 1 || !made_name(p, b))) {
		add_step(p, STEP_DRESS, b);
		return;
	}
	if (b->id.nlink > 1 && b->obj && !S_ISDIR(b->id.mode)) {
		other = other_name(p, b);
		if (other) {
			add_plain(p, STEP_LINK, b->layer, b->rel, other->rel);
			return;
		}
		p->made = xrealloc(p->made, (p->nmade + 1) * sizeof(*p->made));
		p->made[p->nmade++] = b;
	}
	add_step(p, STEP_MAKE, b);
}

static int plan_one(void *arg, const struct ck_diff *d, struct err *e)
{
	struct planner *p = arg;
	const char *slash = strrchr(d->rel, '/');

	(void)e;
	if (p->gone.len && p->gone_layer == d->layer &&
	    strncmp(d->rel, p->gone.data, p->gone.len) == 0)
		return 0;
	if (!d->way && d->b.seen != CK_LOWER && d->a.seen != CK_ABSENT &&
	    (d->b.seen == CK_ABSENT || !S_ISDIR(d->b.e->id.mode))) {
		buf_reset(&p->gone);
		buf_addf(&p->gone, "%s/", d->rel);
		p->gone_layer = d->layer;
	}
	if (d->way) {
		if (d->b.seen == CK_UPPER)
			add_step(p, STEP_MAKE, d->b.e);
		else
			add_plain(p, STEP_HOST_DIR, d->layer, d->rel, "");
		dress_later(p, d->layer, d->rel, strlen(d->rel));
		return 0;
	}
	if (d->b.seen == CK_ABSENT)
		add_plain(p, STEP_REMOVE, d->layer, d->rel, "");
	else if (d->b.seen == CK_UPPER)
		plan_make(p, d);
	else if (!d->dir)
		add_plain(p, STEP_HOST, d->layer, d->rel, "");
	if (d->dir || (d->b.seen == CK_UPPER && S_ISDIR(d->b.e->id.mode)))
		dress_later(p, d->layer, d->rel, strlen(d->rel));
	if (p->all && *d->rel)
		dress_later(p, d->layer, d->rel, slash ? (size_t)(slash - d->rel) : 0);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return ck_order(x->layer, x->rel, y->layer, y->rel);
}

/*
 * Writes the steps that set attributes of directories: the deepest first, each directory once.
 */
static void plan_dresses(struct planner *p)
{
	if (p->ndirs)
		qsort(p->dirs, p->ndirs, sizeof(*p->dirs), by_place);
	for (size_t i = p->ndirs; i > 0; i--) {
		const struct place *d = &p->dirs[i - 1];
		const struct ck_entry *t;

		if (i < p->ndirs && by_place(d, d + 1) == 0)
			continue;
		t = ck_find(p->target, d->layer, d->rel);
		if (t && S_ISDIR(t->id.mode))
			add_step(p, STEP_DRESS, t);
		else if (!t)
			add_plain(p, STEP_HOST_DRESS, d->layer, d->rel, "");
	}
	for (size_t i = 0; i < p->ndirs; i++)
		free(p->dirs[i].rel);
	free(p->dirs);
}

int ck_plan(const struct ck_layers *layers, const struct ck_state *now,
	    const struct ck_state *target, const char *const *paths, int fd,
	    uint64_t *steps, struct err *e)
{
	struct planner p = {
		.layers = layers, .now = now, .target = target, .all = !paths
	};
	int r = ck_compare(layers, now, target, paths, plan_one, &p, e);
	size_t at = 0;

	plan_dresses(&p);
	while (r == 0 && at < p.steps.len) {
		ssize_t n = write(fd, p.steps.data + at, p.steps.len - at);

		if (n <= 0)
			r = err_sys(e, n < 0 ? errno : ENOSPC, "cannot write the steps");
		else
			at += (size_t)n;
	}
	*steps = p.n;
	buf_free(&p.steps);
	buf_free(&p.gone);
	free(p.made);
	return r;
}

/* --- carrying them out --- */

/* Descriptors of the last step: the next step often needs the same. */
struct last {
	int dir;
	uint32_t layer;
	struct buf rel;
	struct ck_opened pack;
};

static int write_block(int out, const char *block, off_t size)
{
	int r = ck_write_at(out, block, (size_t)size, 0);

	return r < 0 ? r : ftruncate(out, size) < 0 ? -errno : 0;
}

/*
 * Makes the content of @out the first @size bytes of @in. @out is not emptied first where that
 * can be avoided: ext4 writes a file that was emptied and filled again to the disk when it is
 * closed.
 */
static int replace_data(int in, int out, off_t size)
{
	char block[CK_SMALL];
	struct stat st;
	off_t n = 0;
	ssize_t r = 1;

	if (fstat(in, &st) < 0)
		return -errno;
	if (size > CK_SMALL || (off_t)st.st_blocks * 512 < size) {
		if (ftruncate(out, 0) < 0)
			return -errno;
		return copy_data(in, out, size, false);
	}
	while (n < size && (r = pread(in, block + n, (size_t)(size - n), n)) > 0)
		n += r;
	if (r <= 0 && n < size)
		return r < 0 ? -errno : -EIO;
	return write_block(out, block, size);
}

static int rewrite(const struct ck_layer *l, const struct ck_entry *e, int out,
		   struct last *last)
{
	AUTO_CLOSE int in = -1;
	char block[CK_SMALL];
	int r;

	if (l->objects >= 0 && e->id.size && ck_is_packed(e->obj)) {
		r = ck_read_packed(l, e, block, &last->pack);
		return r < 0 ? r : write_block(out, block, (off_t)e->id.size);
	}
	in = e->id.size && e->id.size <= CK_SMALL ? ck_open_object(l, e) : -1;
	if (in >= 0)
		return replace_data(in, out, (off_t)e->id.size);
	return ftruncate(out, 0) < 0 ? -errno : ck_copy_out(l, e, out);
}

/*
 * Does a file of ours, which was @st, lack only its mtime? (Writing to it takes setuid bits
 * away.)
 */
static bool lacks_time(const struct ck_layer *l, const struct ck_entry *e, int fd,
		       const struct stat *st)
{
	return st->st_mode == e->id.mode && !(st->st_mode & 06000) &&
	       st->st_uid == e->id.uid && st->st_gid == e->id.gid &&
	       !ck_wants_xattrs(l, e) && flistxattr(fd, NULL, 0) == 0;
}

/*
 * The content of an existing file is replaced in place: a process that has it open sees the
 * new content.
 */
static int make_in_place(const struct ck_layer *l, const struct ck_entry *e, int dir,
			 const char *name, const struct stat *st, struct last *last)
{
	struct timespec t[2] = { st->st_atim, ident_time(e->id.mtime) };
	AUTO_CLOSE int out = openat(dir, name,
				    O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = out < 0 ? -errno : rewrite(l, e, out, last);

	if (r < 0)
		return r;
	if (lacks_time(l, e, out, st))
		return futimens(out, t) < 0 ? -errno : 0;
	return ck_dress(l, e, dir, name);
}

static bool in_place(const struct stat *st, mode_t mode, bool several)
{
	return S_ISREG(st->st_mode) && S_ISREG(mode) && st->st_nlink == 1 && !several;
}

static int make(const struct ck_layer *l, const struct ck_entry *e, int dir,
		const char *name, struct last *last)
{
	bool several = e->id.nlink > 1 && !S_ISDIR(e->id.mode);
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? ck_place(l, e, dir, name) : -errno;
	if (S_ISDIR(st.st_mode) && S_ISDIR(e->id.mode))
		return 0;
	if (in_place(&st, e->id.mode, several)) {
		r = make_in_place(l, e, dir, name, &st, last);
		if (r != -ETXTBSY)
			return r;
	}
	r = rmtree_at(dir, name, NULL);
	return r < 0 ? r : ck_place(l, e, dir, name);
}

static int make_link(const struct ck_layer *l, const struct ck_entry *e, int dir,
		     const char *name)
{
	AUTO_CLOSE int from = -1;
	const char *base;
	int r;

	from = ck_open_parent(l->up, e->link, &base);
	if (from < 0)
		return from;
	r = rmtree_at(dir, name, NULL);
	if (r < 0 && r != -ENOENT)
		return r;
	return linkat(from, base, dir, name, 0) < 0 ? -errno : 0;
}

static int host_in_place(int from, const char *base, const struct stat *st, int dir,
			 const char *name)
{
	AUTO_CLOSE int in = fs_open_read(from, base), out = -1;
	struct ident id;
	int r;

	if (in < 0)
		return in;
	out = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (out < 0)
		return -errno;
	r = replace_data(in, out, st->st_size);
	if (r == 0)
		r = copy_attrs(from, base, dir, name);
	ident_from(st, &id);
	return r == 0 ? meta_set(dir, name, &id, true) : r;
}

static int from_host(const struct ck_layer *l, const struct ck_entry *e, int dir,
		     const char *name)
{
	AUTO_CLOSE int from = -1;
	struct stat st, host;
	const char *base;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		from = fs_open_parent(l->host, e->rel, &base);
		if (from >= 0 && fstatat(from, base, &host, AT_SYMLINK_NOFOLLOW) == 0 &&
		    in_place(&st, host.st_mode, false)) {
			r = host_in_place(from, base, &host, dir, name);
			if (r != -ETXTBSY)
				return r;
		}
		r = rmtree_at(dir, name, NULL);
		if (r < 0)
			return r;
	}
	return ck_place_host(l, e->rel, dir, name);
}

static int host_dress(const struct ck_layer *l, const struct ck_entry *e, int dir,
		      const char *name)
{
	AUTO_CLOSE int from = -1;
	const char *base = ".";
	struct ident id;
	struct stat st;
	int r;

	from = *e->rel ? fs_open_parent(l->host, e->rel, &base)
		       : fcntl(l->host, F_DUPFD_CLOEXEC, 3);
	if (from < 0)
		return from;
	if (fstatat(from, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	r = copy_attrs(from, base, dir, name);
	ident_from(&st, &id);
	/* A directory of another user shows other rights inside (snap/store.c): they stay. */
	if (r == 0 && l->lax && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    id.uid != st.st_uid)
		id.mode = st.st_mode;
	return r == 0 ? meta_set(dir, name, &id, true) : r;
}

static int step_dir(struct last *d, const struct ck_layer *l, const struct ck_entry *e,
		    const char **base)
{
	const char *slash = strrchr(e->rel, '/');
	size_t n = slash ? (size_t)(slash - e->rel) : 0;

	*base = !*e->rel ? "." : slash ? slash + 1 : e->rel;
	if (d->dir >= 0 && d->layer == e->layer && d->rel.len == n &&
	    memcmp(buf_str(&d->rel), e->rel, n) == 0)
		return d->dir;
	cleanup_close(&d->dir);
	d->dir = *e->rel ? ck_open_parent(l->up, e->rel, base)
			 : openat(l->up, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	d->layer = e->layer;
	buf_reset(&d->rel);
	buf_add(&d->rel, e->rel, n);
	return d->dir;
}

/* Only steps on plain files leave the open directories valid. */
static void step_done(struct last *d, enum ck_step kind, const struct ck_entry *e)
{
	if ((kind == STEP_MAKE || kind == STEP_DRESS) && S_ISREG(e->id.mode))
		return;
	cleanup_close(&d->dir);
	d->dir = -1;
}

static int do_step(const struct ck_layer *l, enum ck_step kind, const struct ck_entry *e,
		   struct last *last)
{
	const char *base;
	int dir = step_dir(last, l, e, &base), r;

	if (dir < 0)
		return kind == STEP_REMOVE && (dir == -ENOENT || dir == -ENOTDIR) ? 0
										  : dir;
	r = FAULT_POINT("ckpt.step");
	if (r < 0)
		return r;
	switch (kind) {
	case STEP_REMOVE:
		r = rmtree_at(dir, base, NULL);
		return r == -ENOENT ? 0 : r;
	case STEP_MAKE:
		return make(l, e, dir, base, last);
	case STEP_LINK:
		return make_link(l, e, dir, base);
	case STEP_DRESS:
		return ck_dress(l, e, dir, base);
	case STEP_HOST:
		return from_host(l, e, dir, base);
	case STEP_HOST_DIR:
		return mkdirat(dir, base, 0700) < 0 && errno != EEXIST ? -errno : 0;
	case STEP_HOST_DRESS:
		return host_dress(l, e, dir, base);
	}
	return -EPROTO;
}

static int read_steps(int fd, struct buf *b)
{
	char chunk[65536];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		buf_add(b, chunk, (size_t)n);
		at += n;
	}
	return n < 0 ? -errno : 0;
}

/* A step that fails does not stop the others; the first failure is reported. */
int ck_carry_out(const struct ck_layers *layers, int fd, struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT;
	struct last last = { .dir = -1, .pack.fd = -1 };
	int x = read_steps(fd, &b), r = 0;
	const char *p = buf_str(&b), *end = p + b.len;

	if (x < 0)
		return err_sys(e, x, "cannot read the steps");
	while (p < end) {
		struct ck_entry *en;
		char kind = *p++;

		if (!ck_decode(&p, end, &en) || en->layer >= layers->n) {
			r = err_set(e, ERR_CORRUPT, "the steps are damaged");
			break;
		}
		x = do_step(&layers->v[en->layer], (enum ck_step)kind, en, &last);
		step_done(&last, (enum ck_step)kind, en);
		if (x < 0 && r == 0)
			r = ck_fail(&layers->v[en->layer], en->rel, x, "bring back", e);
		ck_unref(en);
	}
	cleanup_close(&last.dir);
	cleanup_close(&last.pack.fd);
	buf_free(&last.rel);
	return r;
}
