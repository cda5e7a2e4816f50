/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "change/apply_parts.h"
#include "change/meta.h"
#include "sys/fs.h"

int apply_look(struct apply *a, uint32_t layer, const char *rel, struct ident *host,
	       struct ident *up, struct err *e)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	struct place p;
	int x = 0;

	*host = *up = (struct ident){ 0 };
	if (apply_at(a, &r, &p, e) < 0 && e->kind != ERR_CONFLICT)
		return -1;
	if (p.host >= 0)
		x = ident_at(p.host, p.name, host);
	if (x == 0 && p.up >= 0)
		x = ident_at(p.up, p.name, up);
	return x < 0 ? apply_failed(a, &r, x, e) : 0;
}

bool apply_is_copy(struct apply *a, uint32_t layer, const char *rel)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	struct place p;
	struct err e;

	apply_at(a, &r, &p, &e);
	return p.up >= 0 && meta_is_copy(p.up, p.name);
}

int apply_pack(struct apply *a, uint32_t layer, const char *rel, bool host,
	       struct buf *out, struct err *e)
{
	struct plan_rec r = { .layer = layer, .rel = rel };
	struct place p;
	int x;

	if (apply_at(a, &r, &p, e) < 0)
		return -1;
	x = meta_pack(host ? p.host : p.up, p.name, out);
	return x < 0 ? apply_failed(a, &r, x, e) : 0;
}

static int copy_before_image(struct apply *a, const struct plan_rec *r,
			     const struct place *p, struct err *e)
{
	AUTO_CLOSE int in = fs_open_read(p->host, p->name), out = -1;
	int x;

	if (in < 0)
		return apply_failed(a, r, in, e);
	out = openat(p->old, p->slot,
		     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out < 0)
		return apply_failed(a, r, errno, e);
	x = apply_copy(in, out, r->before.size);
	if (x == 0 && fsync(out) < 0)
		x = -errno;
	return x < 0 ? apply_failed(a, r, x, e) : 0;
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
	if (apply_at(a, r, &p, e) < 0)
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
	return x < 0 ? apply_failed(a, r, x, e) : 0;
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
	if (apply_at(a, r, &p, e) < 0)
		return -1;
	x = sync_tree(p.up, p.name);
	return x < 0 ? apply_failed(a, r, x, e) : 0;
}

int apply_sync_dirs(struct apply *a, const struct plan_rec *r, struct err *e)
{
	int host = a->host;
	struct place p;
	int x = 0;

	if (apply_at(a, r, &p, e) < 0)
		return -1;
	if (p.host == host && host >= 0 && r->kind != PLAN_DIR && r->kind != PLAN_META)
		return 0; /* the same directory as the step before: done */
	if (r->kind == PLAN_META || r->kind == PLAN_DIR) {
		AUTO_CLOSE int fd = fs_open_read(p.host, p.name);

		if (fd >= 0 && fsync(fd) < 0)
			x = -errno;
		return x < 0 ? apply_failed(a, r, x, e) : 0;
	}
	x = FAULT_POINT("fsync-dir");
	if (x == 0 && (fsync(p.host) < 0 && errno != EBADF))
		x = -errno;
	if (x == 0 && p.up >= 0 && fsync(p.up) < 0)
		x = -errno;
	if (x == 0 && fsync(p.old) < 0)
		x = -errno;
	return x < 0 ? apply_failed(a, r, x, e) : 0;
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
