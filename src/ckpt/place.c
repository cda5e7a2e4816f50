/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "ckpt/object.h"
#include "ckpt/parts.h"
#include "ckpt/place.h"
#include "ckpt/state.h"
#include "layer/copy.h"
#include "layer/meta.h"
#include "layer/overlay.h"
#include "sys/fs.h"
#include "sys/ns.h"
#include "sys/rmtree.h"

/*
 * Copies the file as it is at this moment: it may change meanwhile, and only the size of @e is
 * read.
 */
static int copy_present(int top, const struct ck_entry *e, int out)
{
	AUTO_CLOSE int in = -1, dir = -1;
	const char *base;
	struct stat st;
	int r;

	dir = fs_open_parent(top, e->rel, &base);
	if (dir < 0)
		return dir;
	do {
		in = fs_open_read(dir, base);
	} while (in == -EACCES && ns_gain_override() == 0);
	if (in < 0)
		return in;
	if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	if ((uint64_t)st.st_size > e->id.size)
		st.st_size = (off_t)e->id.size;
	r = copy_data(in, out, st.st_size, st.st_size >= CK_REFLINK_MIN);
	return r == -EIO ? 0 : r;
}

int ck_copy_out(const struct ck_layer *l, const struct ck_entry *e, int out)
{
	if (!e->id.size)
		return 0;
	if (!e->obj || l->objects < 0)
		return l->live >= 0 ? copy_present(l->live, e, out) : -ENODATA;
	return ck_copy_object(l, e, out);
}

static int place_file(const struct ck_layer *l, const struct ck_entry *e, int dir,
		      const char *name)
{
	AUTO_CLOSE int out = openat(
		dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return out < 0 ? -errno : ck_copy_out(l, e, out);
}

/* Security labels may fail: the system sets them, or does not. */
static bool may_fail(const char *attr)
{
	return strcmp(attr, "security.selinux") == 0;
}

static bool is_wanted(const struct ck_entry *e, const char *attr)
{
	const char *p = e->xattrs, *end = p + e->nxattrs;
	uint32_t n[2];

	while ((size_t)(end - p) >= sizeof(n)) {
		memcpy(n, p, sizeof(n));
		p += sizeof(n);
		if (strcmp(p, attr) == 0)
			return true;
		p += n[0] + n[1];
	}
	return false;
}

bool ck_wants_xattrs(const struct ck_layer *l, const struct ck_entry *e)
{
	const char *p = e->xattrs, *end = p + e->nxattrs;
	uint32_t n[2];

	while ((size_t)(end - p) >= sizeof(n)) {
		memcpy(n, p, sizeof(n));
		p += sizeof(n);
		if (!l->merged || !overlay_is_mark(p))
			return true;
		p += n[0] + n[1];
	}
	return false;
}

static const char *seen_name(const char *attr, bool merged, char *tmp, size_t len)
{
	if (!merged || !overlay_is_escaped(attr))
		return attr;
	snprintf(tmp, len, OVERLAY_MARK "%s", attr + strlen(OVERLAY_ESCAPED));
	return tmp;
}

/* The name that overlayfs gives the attribute @seen of the merged tree in the upper. */
static void escape(const char *seen, char *out, size_t len)
{
	size_t n = strlen(OVERLAY_MARK);

	if (strncmp(seen, OVERLAY_MARK, n) == 0)
		snprintf(out, len, OVERLAY_ESCAPED "%s", seen + n);
	else
		snprintf(out, len, "%s", seen);
}

static int drop_others(const struct ck_layer *l, const struct ck_entry *e, int dir,
		       const char *name, const char *path)
{
	AUTO_BUF struct buf list = BUF_INIT;
	int r = fs_xattr_list(dir, name, &list);

	for (const char *a = buf_str(&list); r == 0 && a < buf_str(&list) + list.len;
	     a += strlen(a) + 1) {
		char escaped[XATTR_NAME_MAX + 32];

		if (l->merged)
			escape(a, escaped, sizeof(escaped));
		if (!is_wanted(e, l->merged ? escaped : a) && !may_fail(a) &&
		    removexattr(path, a) < 0 && errno != ENODATA)
			r = -errno;
	}
	return r;
}

static int set_xattrs(const struct ck_layer *l, const struct ck_entry *e, int dir,
		      const char *name)
{
	AUTO_CLOSE int fd = -1;
	const char *p = e->xattrs, *end = p + e->nxattrs;
	char path[32], tmp[XATTR_NAME_MAX + 32];
	uint32_t n[2];
	int r;

	if (!S_ISREG(e->id.mode) && !S_ISDIR(e->id.mode))
		return 0;
	fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = drop_others(l, e, dir, name, path);
	while (r == 0 && (size_t)(end - p) >= sizeof(n)) {
		const char *attr = p + sizeof(n);

		memcpy(n, p, sizeof(n));
		p = attr + n[0] + n[1];
		if (l->merged && overlay_is_mark(attr))
			continue;
		if ((FAULT_AT("ckpt.setxattr") ||
		     setxattr(path, seen_name(attr, l->merged, tmp, sizeof(tmp)),
			      attr + n[0], n[1], 0) < 0) &&
		    !may_fail(attr))
			r = -errno;
	}
	return r;
}

/* Setting an attribute of the user class needs write permission: the mode comes last. */
int ck_dress(const struct ck_layer *l, const struct ck_entry *e, int dir,
	     const char *name)
{
	struct ident id = e->id;
	int r = meta_own(dir, name, &id, l->lax);

	if (r == 0)
		r = set_xattrs(l, e, dir, name);
	if (r == -EACCES) {
		AUTO_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fd >= 0 && chmod(path, 0700) == 0)
			r = set_xattrs(l, e, dir, name);
	}
	return r == 0 ? meta_set(dir, name, &id, l->lax) : r;
}

int ck_place(const struct ck_layer *l, const struct ck_entry *e, int dir,
	     const char *name)
{
	int r = FAULT_POINT("ckpt.place");

	if (r < 0)
		return r;
	if (S_ISREG(e->id.mode))
		r = place_file(l, e, dir, name);
	else if (S_ISDIR(e->id.mode))
		r = mkdirat(dir, name, 0700) < 0 ? -errno : 0;
	else if (S_ISLNK(e->id.mode))
		r = symlinkat(e->link, dir, name) < 0 ? -errno : 0;
	else
		r = mknodat(dir, name, (e->id.mode & S_IFMT) | 0600, e->rdev) < 0 ? -errno
										  : 0;
	/* The attributes of a whiteout mean nothing, and not every user may set them. */
	if (r < 0 || ck_is_whiteout(e))
		return r;
	return ck_dress(l, e, dir, name);
}

static int host_tree(const struct ck_layer *l, struct buf *rel, int from,
		     const char *name, int to, const char *as)
{
	AUTO_CLOSE int in = -1, out = -1;
	struct fs_names names;
	uint64_t objects = 0;
	size_t len = rel->len;
	struct ident id;
	struct stat st;
	int r;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (ck_hidden(l, buf_str(rel)))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return copy_object(from, name, to, as, &objects);
	if (mkdirat(to, as, 0700) < 0)
		return -errno;
	out = openat(to, as, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (out < 0)
		return -errno;
	in = fs_open_dir_here(from, name, O_RDONLY);
	r = in == -EXDEV ? 0 : in < 0 ? in : fs_names_read(in, &names);
	if (r < 0)
		return r;
	for (size_t i = 0; in >= 0 && i < names.n && r == 0; i++) {
		buf_addf(rel, "/%s", names.v[i]);
		r = host_tree(l, rel, in, names.v[i], out, names.v[i]);
		buf_truncate(rel, len);
	}
	if (in >= 0)
		fs_names_free(&names);
	if (r == 0)
		r = copy_attrs(from, name, to, as);
	ident_from(&st, &id);
	return r == 0 ? meta_set(to, as, &id, true) : r;
}

int ck_place_host(const struct ck_layer *l, const char *rel, int dir, const char *name)
{
	AUTO_BUF struct buf path = BUF_INIT;
	AUTO_CLOSE int from = -1;
	const char *base;

	from = fs_open_parent(l->host, rel, &base);
	if (from < 0)
		return from == -ENOENT || from == -ENOTDIR ? 0 : from;
	buf_adds(&path, rel);
	return host_tree(l, &path, from, base, dir, name);
}

/* --- an upper that is not mounted --- */

struct sync {
	const struct ck_layers *layers;
	const struct ck_state *now, *target;
	/*
	 * Entries whose inode has several names and is in place: object -> entry, sorted by
	 * object.
	 */
	const struct ck_entry **names;
	size_t nnames;
	bool *touched; /* of the target's entries: directories to be dressed at the end */
	struct err *e;
};

int ck_open_parent(int root, const char *rel, const char **base)
{
	int fd;

	do {
		fd = fs_open_parent(root, rel, base);
	} while (fd == -EACCES && ns_gain_override() == 0);
	return fd;
}

static ptrdiff_t target_index(const struct sync *s, uint32_t layer, const char *rel,
			      size_t len)
{
	AUTO_FREE char *path = xstrndup(rel, len);
	size_t lo = 0, hi = s->target->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct ck_entry *t = s->target->v[mid];
		int c = ck_order(t->layer, t->rel, layer, path);

		if (c == 0)
			return (ptrdiff_t)mid;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

/* The directory of @en changes: its times are set when everything is done. */
static void touch_parent(struct sync *s, const struct ck_entry *en)
{
	const char *slash = strrchr(en->rel, '/');
	ptrdiff_t i = target_index(s, en->layer, en->rel,
				   slash ? (size_t)(slash - en->rel) : 0);

	if (i >= 0)
		s->touched[i] = true;
}

/*
 * Makes a directory accessible whose mode keeps its owner out; the mode is put right at the
 * end.
 */
static int open_to_change(const struct ck_layer *l, const char *rel, const char **base)
{
	int dir = ck_open_parent(l->up, rel, base);
	char path[32];
	struct stat st;

	if (dir < 0 || geteuid() == 0 || fstat(dir, &st) < 0 ||
	    (st.st_mode & 0300) == 0300)
		return dir;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (chmod(path, (st.st_mode & 07777) | 0700) < 0) {
		close(dir);
		return -errno;
	}
	return dir;
}

/*
 * Removes the object only if it is the one that was seen. -ENOTEMPTY, -ESTALE: another process
 * has changed it.
 */
static int remove_seen(const struct ck_entry *en, int dir, const char *base)
{
	bool is_dir = S_ISDIR(en->id.mode);
	struct ident id;
	int r = ident_at(dir, base, &id);

	if (r < 0 || !id.mode)
		return r;
	if (id.ino != en->id.ino || id.mode != en->id.mode ||
	    (!is_dir && (id.mtime != en->id.mtime || id.size != en->id.size)))
		return -ESTALE;
	return unlinkat(dir, base, is_dir ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

static int sync_remove(struct sync *s, const struct ck_entry *en)
{
	const struct ck_layer *l = &s->layers->v[en->layer];
	AUTO_CLOSE int dir = -1;
	const char *base;
	int r;

	dir = open_to_change(l, en->rel, &base);
	r = dir < 0 ? dir : FAULT_POINT("ckpt.remove");
	if (r == 0)
		r = l->shared ? remove_seen(en, dir, base) : rmtree_at(dir, base, NULL);
	if (r < 0 && r != -ENOENT)
		return ck_fail(l, en->rel, r, "remove", s->e);
	touch_parent(s, en);
	return 0;
}

static int by_object(const void *a, const void *b)
{
	const struct ck_entry *x = *(const struct ck_entry *const *)a;
	const struct ck_entry *y = *(const struct ck_entry *const *)b;

	return x->obj < y->obj ? -1 : x->obj > y->obj;
}

static const struct ck_entry **name_slot(struct sync *s, const struct ck_entry *en)
{
	size_t lo = 0, hi = s->nnames;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->names[mid]->obj < en->obj)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &s->names[lo];
}

/* Makes a second name of an object that is in place. -ENOENT: it is not. */
static int sync_link(const struct ck_layer *l, const struct ck_entry *other, int dir,
		     const char *base)
{
	AUTO_CLOSE int from = -1;
	const char *name;

	from = fs_open_parent(l->up, other->rel, &name);
	if (from < 0)
		return from;
	return linkat(from, name, dir, base, 0) < 0 ? -errno : 0;
}

static int sync_create(struct sync *s, size_t i)
{
	const struct ck_entry *en = s->target->v[i], **slot;
	const struct ck_layer *l = &s->layers->v[en->layer];
	AUTO_CLOSE int dir = -1;
	bool several = en->id.nlink > 1 && !S_ISDIR(en->id.mode) && en->obj;
	const char *base;
	int r = -ENOENT;

	dir = open_to_change(l, en->rel, &base);
	if (dir < 0)
		return ck_fail(l, en->rel, dir, "restore", s->e);
	slot = several ? name_slot(s, en) : NULL;
	if (slot && *slot != en && (*slot)->layer == en->layer)
		r = sync_link(l, *slot, dir, base);
	if (r < 0) {
		r = ck_place(l, en, dir, base);
		if (r == 0 && slot)
			*slot = en;
	}
	if (r < 0)
		return ck_fail(l, en->rel, r, "restore", s->e);
	s->touched[i] = S_ISDIR(en->id.mode);
	touch_parent(s, en);
	return 0;
}

static int sync_dress(struct sync *s, const struct ck_entry *en)
{
	const struct ck_layer *l = &s->layers->v[en->layer];
	AUTO_CLOSE int dir = -1;
	const char *base = "";
	int r;

	dir = *en->rel ? ck_open_parent(l->up, en->rel, &base)
		       : fcntl(l->up, F_DUPFD_CLOEXEC, 3);
	r = dir < 0 ? dir : ck_dress(l, en, dir, *en->rel ? base : ".");
	return r < 0 ? ck_fail(l, en->rel, r, "restore", s->e) : 0;
}

/* A directory that stays a directory is changed in place; anything else is made anew. */
static bool stays(const struct ck_entry *a, const struct ck_entry *b)
{
	return ck_same(a, b) || (S_ISDIR(a->id.mode) && S_ISDIR(b->id.mode));
}

/* Inodes with several names: those that are in place already come first. */
static void gather_names(struct sync *s)
{
	const struct ck_state *t = s->target;
	size_t k = 0;

	s->names = xcalloc(t->n + 1, sizeof(struct ck_entry *));
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i]->id.nlink > 1 && t->v[i]->obj)
			s->names[s->nnames++] = t->v[i];
	if (s->nnames)
		qsort(s->names, s->nnames, sizeof(struct ck_entry *), by_object);
	/* Keeps one entry for each inode: the first that is in place, or any. */
	for (size_t i = 0; i < s->nnames; i++) {
		const struct ck_entry *en = s->names[i];
		const struct ck_entry *was = ck_find(s->now, en->layer, en->rel);

		if (k && s->names[k - 1]->obj == en->obj) {
			if (was && ck_same(was, en))
				s->names[k - 1] = en;
			continue;
		}
		s->names[k++] = en;
	}
	s->nnames = k;
}

static int sync_all(struct sync *s)
{
	const struct ck_state *now = s->now, *target = s->target;

	for (size_t i = now->n; i > 0; i--) {
		const struct ck_entry *en = now->v[i - 1];
		const struct ck_entry *to = ck_find(target, en->layer, en->rel);

		if (*en->rel && (!to || !stays(en, to)) && sync_remove(s, en) < 0)
			return -1;
	}
	for (size_t i = 0; i < target->n; i++) {
		const struct ck_entry *en = target->v[i];
		const struct ck_entry *was = ck_find(now, en->layer, en->rel);

		if (was && stays(was, en)) {
			if (!ck_same(was, en))
				s->touched[i] = true;
		} else if (*en->rel && sync_create(s, i) < 0) {
			return -1;
		}
	}
	for (size_t i = target->n; i > 0; i--)
		if (s->touched[i - 1] && sync_dress(s, target->v[i - 1]) < 0)
			return -1;
	return 0;
}

int ck_sync(const struct ck_layers *layers, const struct ck_state *now,
	    const struct ck_state *target, struct err *e)
{
	struct sync s = { .layers = layers, .now = now, .target = target, .e = e };
	int r;

	s.touched = xcalloc(target->n + 1, sizeof(*s.touched));
	gather_names(&s);
	r = sync_all(&s);
	free(s.touched);
	free(s.names);
	return r;
}
