/* SPDX-License-Identifier: Apache-2.0 */
#include "change/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/text.h"
#include "change/meta.h"
#include "sys/fs.h"

struct roots {
	int host, up, old;
};

struct apply {
	const struct change_layer *layers;
	size_t n;
	struct roots *roots;
	/* The directory of the last step: the next one is mostly in the same. */
	struct buf dir;
	uint32_t layer;
	int host, up;
};

/* Where one step happens. @host or @up may be -1 if that directory does not exist. */
struct place {
	int host, up, old;
	const char *name;
	char slot[24]; /* its name in old/ */
};

static int open_layer(const struct change_layer *l, struct roots *r, struct err *e)
{
	AUTO_FREE char *old = xasprintf("%.*sold", (int)(strlen(l->upper) - 2), l->upper);

	r->host = open(l->host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->host < 0)
		return err_sys(e, errno, "cannot open %s", l->host);
	r->up = open(l->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->up < 0)
		return err_sys(e, errno, "cannot open %s", l->upper);
	if (mkdir(old, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "cannot make %s", old);
	r->old = open(old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return r->old < 0 ? err_sys(e, errno, "cannot open %s", old) : 0;
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
		if (open_layer(&layers[i], &a->roots[i], e) < 0) {
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
	cleanup_close(&a->host);
	cleanup_close(&a->up);
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

static int failed(const struct apply *a, const struct plan_rec *r, int err, struct err *e)
{
	AUTO_BUF struct buf q = BUF_INIT;

	quote(&q, a, r);
	return err_sys(e, err, "cannot change %.400s", buf_str(&q));
}

static int conflict(const struct apply *a, const struct plan_rec *r, const char *what,
		    struct err *e)
{
	AUTO_BUF struct buf q = BUF_INIT;

	quote(&q, a, r);
	return err_set(e, ERR_CONFLICT, "%.400s %s", buf_str(&q), what);
}

/* --- finding the place --- */

static int at(struct apply *a, const struct plan_rec *r, struct place *p, struct err *e)
{
	const char *slash = strrchr(r->rel, '/');
	size_t len = slash ? (size_t)(slash - r->rel) : 0;
	const struct roots *root;

	if (r->layer >= a->n)
		return err_set(e, ERR_CORRUPT,
			       "a change list names a layer that is not there");
	root = &a->roots[r->layer];
	if (a->host < 0 || a->up < 0 || a->layer != r->layer || a->dir.len != len ||
	    memcmp(buf_str(&a->dir), r->rel, len) != 0) {
		cleanup_close(&a->host);
		cleanup_close(&a->up);
		buf_reset(&a->dir);
		buf_add(&a->dir, r->rel, len);
		a->layer = r->layer;
		a->host = fs_open_beneath(root->host, len ? buf_str(&a->dir) : ".",
					  O_RDONLY | O_DIRECTORY);
		if (a->host == -EACCES) /* search alone will do for most of it */
			a->host = fs_open_beneath(root->host,
						  len ? buf_str(&a->dir) : ".",
						  O_PATH | O_DIRECTORY);
		a->up = fs_open_beneath(root->up, len ? buf_str(&a->dir) : ".",
					O_RDONLY | O_DIRECTORY);
	}
	*p = (struct place){ .host = a->host,
			     .up = a->up,
			     .old = root->old,
			     .name = slash ? slash + 1 : r->rel };
	snprintf(p->slot, sizeof(p->slot), "%llu", (unsigned long long)r->serial);
	if (p->host == -ENOENT || p->host == -ENOTDIR || p->host == -ELOOP)
		return conflict(a, r, "has lost its directory on the host", e);
	if (p->host < 0)
		return failed(a, r, p->host, e);
	return 0;
}

/*
 * A directory that its owner may not write (mode 0555) lets nothing in or out: it is opened
 * up, and gets its right mode with the rest of its attributes at the end.
 */
static int rename_in(int fromdir, const char *from, int todir, const char *to,
		     unsigned flags)
{
	const int dirs[2] = { fromdir, todir };
	struct stat st;
	int r = FAULT_POINT("rename");

	if (r < 0)
		return r;
	if (syscall(SYS_renameat2, fromdir, from, todir, to, flags) == 0)
		return 0;
	if (errno != EACCES)
		return -errno;
	for (int i = 0; i < 2; i++)
		if (fstat(dirs[i], &st) == 0 && st.st_uid == geteuid() &&
		    (st.st_mode & 0300) != 0300 && fchmod(dirs[i], st.st_mode | 0700) < 0)
			return -errno;
	if (syscall(SYS_renameat2, fromdir, from, todir, to, flags) < 0)
		return -errno;
	return 0;
}

/* --- replace --- */

/*
 * Nobody may have the file open for writing while it is exchanged: he would go on
 * writing into what is history by then. A lease says so, and tells if somebody comes.
 * Returns an fd that holds it, -EAGAIN if there is a writer, another -errno if
 * this file can have no lease (not ours, not readable): the checks by identity remain.
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

static int exchange(struct apply *a, const struct plan_rec *r, const struct place *p,
		    const struct ident *expected, struct err *e)
{
	AUTO_CLOSE int lease = -ENOLCK;
	struct ident out;
	bool lost;
	int x;

	if (S_ISREG(expected->mode) && !(r->flags & PLAN_FORCE)) {
		lease = take_lease(p->host, p->name);
		if (lease == -EAGAIN)
			return conflict(a, r, "is open for writing in another program",
					e);
	}
	x = rename_in(p->up, p->name, p->host, p->name, RENAME_EXCHANGE);
	if (x < 0)
		return failed(a, r, x, e);
	x = ident_at(p->up, p->name, &out);
	lost = x == 0 && (!ident_same(&out, expected) ||
			  (lease >= 0 && fcntl(lease, F_GETLEASE) != F_RDLCK));
	if (x < 0 || lost) {
		/* Somebody was there in that very moment: his comes back. */
		if (rename_in(p->up, p->name, p->host, p->name, RENAME_EXCHANGE) < 0)
			return failed(a, r, x < 0 ? x : EBUSY, e);
		return x < 0 ? failed(a, r, x, e)
			     : conflict(a, r, "was changed while it was committed", e);
	}
	return 0;
}

static int park(struct apply *a, const struct plan_rec *r, const struct place *p,
		struct err *e)
{
	struct ident id;
	int x;

	if (!(r->flags & PLAN_PARK))
		return 0;
	x = ident_at(p->up, p->name, &id);
	if (x == 0 && ident_is(&id, &r->before))
		x = rename_in(p->up, p->name, p->old, p->slot, RENAME_NOREPLACE);
	return x < 0 ? failed(a, r, x, e) : 0;
}

static int replace_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return failed(a, r, x, e);
	if (!ident_is(&now, &r->after)) {
		if (!ident_same(&now, &r->before))
			return conflict(a, r,
					now.mode ? "was changed on the host"
						 : "was deleted on the host",
					e);
		if (exchange(a, r, &p, &r->before, e) < 0)
			return -1;
	}
	return park(a, r, &p, e);
}

static int replace_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now, kept;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return failed(a, r, x, e);
	if (r->flags & PLAN_PARK) {
		/* Back into the upper first: then it is the plain case. */
		x = ident_at(p.old, p.slot, &kept);
		if (x == 0 && kept.mode && !ident_is(&now, &r->before))
			x = rename_in(p.old, p.slot, p.up, p.name, RENAME_NOREPLACE);
		if (x < 0 && x != -EEXIST)
			return failed(a, r, x, e);
	}
	if (ident_is(&now, &r->before))
		return 0;
	x = ident_at(p.up, p.name, &kept);
	if (x < 0)
		return failed(a, r, x, e);
	if (!ident_is(&now, &r->after) || !ident_is(&kept, &r->before))
		return conflict(a, r, "was changed on the host after the commit", e);
	if (!(r->flags & PLAN_FORCE) && !ident_same(&now, &r->after))
		return conflict(a, r, "was changed on the host after the commit", e);
	if (exchange(a, r, &p, &now, e) < 0)
		return -1;
	if (r->flags & PLAN_OPAQUE) {
		x = meta_set_opaque(p.up, p.name, true);
		if (x < 0)
			return failed(a, r, x, e);
	}
	return 0;
}

/* --- create --- */

static int create_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = rename_in(p.up, p.name, p.host, p.name, RENAME_NOREPLACE);
	if (x == 0)
		return 0;
	if (x != -EEXIST && x != -ENOENT)
		return failed(a, r, x, e);
	if (ident_at(p.host, p.name, &now) == 0 && ident_is(&now, &r->after))
		return 0; /* done before the crash */
	return x == -ENOENT ? failed(a, r, x, e)
			    : conflict(a, r, "was made on the host meanwhile", e);
}

static int create_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return failed(a, r, x, e);
	if (!ident_is(&now, &r->after)) {
		if (ident_at(p.up, p.name, &now) == 0 && ident_is(&now, &r->after))
			return 0;
		return conflict(a, r, "was changed on the host after the commit", e);
	}
	if (!(r->flags & PLAN_FORCE) && !S_ISDIR(now.mode) &&
	    !ident_same(&now, &r->after))
		return conflict(a, r, "was changed on the host after the commit", e);
	x = rename_in(p.host, p.name, p.up, p.name, RENAME_NOREPLACE);
	if (x == 0 && r->flags & PLAN_OPAQUE)
		x = meta_set_opaque(p.up, p.name, true);
	return x < 0 ? failed(a, r, x, e) : 0;
}

/* --- delete --- */

static int delete_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident now, moved;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return failed(a, r, x, e);
	if (!now.mode)
		return 0; /* done, or gone by itself: the aim is reached */
	if (!ident_same(&now, &r->before)) {
		if (ident_at(p.old, p.slot, &moved) == 0 && ident_is(&moved, &r->before))
			return 0; /* done, and made anew by somebody since */
		return conflict(a, r, "was changed on the host", e);
	}
	x = rename_in(p.host, p.name, p.old, p.slot, RENAME_NOREPLACE);
	if (x < 0)
		return failed(a, r, x, e);
	x = ident_at(p.old, p.slot, &moved);
	if (x == 0 && ident_same(&moved, &r->before))
		return 0;
	x = rename_in(p.old, p.slot, p.host, p.name, RENAME_NOREPLACE);
	return x < 0 ? failed(a, r, x, e)
		     : conflict(a, r, "was changed while committing", e);
}

static int delete_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident kept;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = ident_at(p.old, p.slot, &kept);
	if (x < 0)
		return failed(a, r, x, e);
	if (!kept.mode)
		return 0;
	x = rename_in(p.old, p.slot, p.host, p.name, RENAME_NOREPLACE);
	if (x == -EEXIST)
		return conflict(a, r, "was made anew on the host after the commit", e);
	return x < 0 ? failed(a, r, x, e) : 0;
}

/* --- attributes, in place --- */

static int set_meta(struct apply *a, const struct plan_rec *r, bool forward,
		    struct err *e)
{
	const struct ident *from = forward ? &r->before : &r->after;
	const struct ident *to = forward ? &r->after : &r->before;
	struct place p;
	struct ident now;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return failed(a, r, x, e);
	/* It is always the host's own inode here, in both directions. */
	if (!ident_is(&now, &r->before))
		return conflict(a, r, "was replaced on the host", e);
	if (r->kind == PLAN_META && !(r->flags & PLAN_FORCE) &&
	    (now.size != from->size || (now.mode != from->mode && now.mode != to->mode) ||
	     (now.mtime != from->mtime && now.mtime != to->mtime)))
		return conflict(a, r, "was changed on the host", e);
	if (r->flags & PLAN_XATTR) {
		x = meta_unpack(p.host, p.name, forward ? r->xafter : r->xbefore,
				forward ? r->nxafter : r->nxbefore);
		if (x < 0)
			return failed(a, r, x, e);
	}
	x = meta_set(p.host, p.name, to, a->layers[r->layer].lax_owner);
	return x < 0 ? failed(a, r, x, e) : 0;
}

/* --- content, in place: the host's inode has other names, which must see it too --- */

static int copy_into(int from, int to, uint64_t size)
{
	int x = FAULT_POINT("rewrite");

	if (x < 0)
		return x;
	if (ftruncate(to, 0) < 0)
		return -errno;
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while (size > 0) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		size -= (uint64_t)n;
	}
	return 0;
}

static int rewrite(struct apply *a, const struct plan_rec *r, bool forward, struct err *e)
{
	const struct ident *to = forward ? &r->after : &r->before;
	AUTO_CLOSE int in = -1, out = -1;
	struct place p;
	struct ident now;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	x = ident_at(p.host, p.name, &now);
	if (x < 0)
		return failed(a, r, x, e);
	if (!ident_is(&now, &r->before))
		return conflict(a, r, "was replaced on the host", e);
	in = forward ? fs_open_read(p.up, p.name) : fs_open_read(p.old, p.slot);
	if (in < 0)
		return failed(a, r, in, e);
	out = openat(p.host, p.name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (out < 0)
		return failed(a, r, errno, e);
	x = copy_into(in, out, to->size);
	if (x == 0 && r->flags & PLAN_XATTR)
		x = meta_unpack(p.host, p.name, forward ? r->xafter : r->xbefore,
				forward ? r->nxafter : r->nxbefore);
	if (x == 0)
		x = meta_set(p.host, p.name, to, a->layers[r->layer].lax_owner);
	if (x == 0 && fsync(out) < 0)
		x = -errno;
	return x < 0 ? failed(a, r, x, e) : 0;
}

/* --- another name --- */

static int link_step(struct apply *a, const struct plan_rec *r, bool forward,
		     struct err *e)
{
	int root = r->layer < a->n ? a->roots[r->layer].host : -1;
	AUTO_CLOSE int dir = -1;
	struct ident now, target;
	const char *base;
	struct place p;
	int x;

	if (at(a, r, &p, e) < 0)
		return -1;
	dir = fs_open_parent(root, r->link, &base);
	if (dir < 0)
		return failed(a, r, dir, e);
	x = ident_at(p.host, p.name, &now);
	if (x == 0)
		x = ident_at(dir, base, &target);
	if (x < 0)
		return failed(a, r, x, e);
	if (ident_is(&now, &target)) {
		if (!forward && unlinkat(p.host, p.name, 0) < 0)
			return failed(a, r, errno, e);
		return 0;
	}
	if (!forward)
		return now.mode ? conflict(a, r,
					   "was changed on the host after the commit", e)
				: 0;
	if (now.mode)
		return conflict(a, r, "was made on the host meanwhile", e);
	x = FAULT_POINT("link");
	if (x < 0 || linkat(dir, base, p.host, p.name, 0) < 0)
		return failed(a, r, x < 0 ? x : errno, e);
	return 0;
}

int apply_forward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	switch (r->kind) {
	case PLAN_REPLACE:
		return replace_forward(a, r, e);
	case PLAN_CREATE:
		return create_forward(a, r, e);
	case PLAN_DELETE:
		return delete_forward(a, r, e);
	case PLAN_META:
	case PLAN_DIR:
		return set_meta(a, r, true, e);
	case PLAN_REWRITE:
		return rewrite(a, r, true, e);
	case PLAN_LINK:
		return link_step(a, r, true, e);
	}
	return err_set(e, ERR_CORRUPT, "a change list holds an unknown step");
}

int apply_backward(struct apply *a, const struct plan_rec *r, struct err *e)
{
	switch (r->kind) {
	case PLAN_REPLACE:
		return replace_backward(a, r, e);
	case PLAN_CREATE:
		return create_backward(a, r, e);
	case PLAN_DELETE:
		return delete_backward(a, r, e);
	case PLAN_META:
	case PLAN_DIR:
		return set_meta(a, r, false, e);
	case PLAN_REWRITE:
		return rewrite(a, r, false, e);
	case PLAN_LINK:
		return link_step(a, r, false, e);
	}
	return err_set(e, ERR_CORRUPT, "a change list holds an unknown step");
}

int apply_verify(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	struct ident out;

	if (r->kind != PLAN_REPLACE || r->flags & (PLAN_FORCE | PLAN_IS_DIR) ||
	    !S_ISREG(r->before.mode))
		return 0;
	if (at(a, r, &p, e) < 0)
		return -1;
	if (r->flags & PLAN_PARK)
		ident_at(p.old, p.slot, &out);
	else
		ident_at(p.up, p.name, &out);
	return ident_same(&out, &r->before)
		       ? 0
		       : conflict(a, r, "was written to while it was committed", e);
}

/* --- staging and durability --- */

static int copy_before_image(struct apply *a, const struct plan_rec *r,
			     const struct place *p, struct err *e)
{
	AUTO_CLOSE int in = fs_open_read(p->host, p->name), out = -1;
	int x;

	if (in < 0)
		return failed(a, r, in, e);
	out = openat(p->old, p->slot,
		     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return failed(a, r, errno, e);
	x = copy_into(in, out, r->before.size);
	if (x == 0 && fsync(out) < 0)
		x = -errno;
	return x < 0 ? failed(a, r, x, e) : 0;
}

int apply_stage(struct apply *a, const struct plan_rec *r, uint64_t *objects,
		struct err *e)
{
	const struct change_layer *l;
	gid_t gid = (gid_t)-1;
	struct stat parent;
	struct place p;
	int x;

	if (r->kind == PLAN_DIR || r->kind == PLAN_META || r->kind == PLAN_DELETE ||
	    r->kind == PLAN_LINK)
		return 0;
	if (at(a, r, &p, e) < 0)
		return -1;
	l = &a->layers[r->layer];
	if (r->kind == PLAN_REWRITE) {
		(*objects)++;
		return copy_before_image(a, r, &p, e);
	}
	/* Groups that the sandbox could not keep: the replaced object's, the directory's. */
	if (l->lax_owner && r->before.mode)
		gid = r->before.gid;
	else if (l->lax_owner && fstat(p.host, &parent) == 0 && parent.st_mode & S_ISGID)
		gid = parent.st_gid;
	x = meta_strip(p.up, p.name, l->gid, gid, objects);
	return x < 0 ? failed(a, r, x, e) : 0;
}

static int sync_tree(int dirfd, const char *name)
{
	AUTO_CLOSE int fd = openat(dirfd, name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct fs_names names;
	struct stat st;
	int r = FAULT_POINT("fsync");

	if (r < 0)
		return r;
	if (fd <
	    0) /* a link, a socket: durable with its directory; a file we may not read */
		return errno == ELOOP || errno == ENXIO ? 0
		       : errno == EACCES		? -EACCES
							: -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	if (fsync(fd) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return 0;
	r = fs_names_read(fd, &names);
	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n && r == 0; i++)
		r = sync_tree(fd, names.v[i]);
	fs_names_free(&names);
	return r;
}

int apply_sync_staged(struct apply *a, const struct plan_rec *r, struct err *e)
{
	struct place p;
	int x;

	if (r->kind != PLAN_REPLACE && r->kind != PLAN_CREATE && r->kind != PLAN_REWRITE)
		return 0;
	if (at(a, r, &p, e) < 0)
		return -1;
	x = sync_tree(p.up, p.name);
	return x < 0 ? failed(a, r, x, e) : 0;
}

int apply_sync_dirs(struct apply *a, const struct plan_rec *r, struct err *e)
{
	int host = a->host;
	struct place p;
	int x = 0;

	if (at(a, r, &p, e) < 0)
		return -1;
	if (p.host == host && host >= 0 && r->kind != PLAN_DIR && r->kind != PLAN_META)
		return 0; /* the same directory as the step before: done */
	if (r->kind == PLAN_META || r->kind == PLAN_DIR) {
		AUTO_CLOSE int fd = fs_open_read(p.host, p.name);

		if (fd >= 0 && fsync(fd) < 0)
			x = -errno;
		return x < 0 ? failed(a, r, x, e) : 0;
	}
	x = FAULT_POINT("fsync-dir");
	if (x == 0 && (fsync(p.host) < 0 && errno != EBADF))
		x = -errno;
	if (x == 0 && p.up >= 0 && fsync(p.up) < 0)
		x = -errno;
	if (x == 0 && fsync(p.old) < 0)
		x = -errno;
	return x < 0 ? failed(a, r, x, e) : 0;
}

int apply_syncfs(struct apply *a, struct err *e)
{
	for (size_t i = 0; i < a->n; i++) {
		struct stat st, other;
		bool seen = false;
		int x = FAULT_POINT("syncfs");

		if (x < 0)
			return err_sys(e, x, "cannot write everything to the disk");
		if (fstat(a->roots[i].up, &st) < 0)
			return err_sys(e, errno, "cannot look at a layer");
		for (size_t k = 0; k < i && !seen; k++)
			seen = fstat(a->roots[k].up, &other) == 0 &&
			       other.st_dev == st.st_dev;
		if (!seen && syncfs(a->roots[i].up) < 0)
			return err_sys(e, errno, "cannot write everything to the disk");
	}
	return 0;
}
