/* SPDX-License-Identifier: Apache-2.0 */
#include "layer/meta.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "layer/overlay.h"
#include "sys/fs.h"
#include "sys/ns.h"

/* Attribute of ours: the mtime of a staged directory while whiteouts are taken out of it. */
#define MTIME "stet.mtime"
/*
 * Attribute of ours: the mode of a staged file while its group is changed, which clears mode
 * bits.
 */
#define MODE "stet.mode"

/*
 * The attributes of an O_PATH descriptor are reached through its name in /proc, which leads to
 * nothing but the object of the descriptor.
 */
struct handle {
	int fd;
	char path[32];
};

static int handle_open(int dirfd, const char *name, struct handle *h)
{
	h->fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (h->fd < 0)
		return -errno;
	snprintf(h->path, sizeof(h->path), "/proc/self/fd/%d", h->fd);
	return 0;
}

static void handle_close(struct handle *h)
{
	cleanup_close(&h->fd);
}

#define AUTO_HANDLE __attribute__((cleanup(handle_close)))

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/*
 * Is @attr a mark of overlayfs or of ours, and not an escaped attribute of the sandboxed side?
 */
static bool is_overlays(const char *attr)
{
	static const char *const names[] = {
		"opaque", "redirect", "origin",	  "impure",   "nlink",	   "upper",
		"uuid",	  "metacopy", "protattr", "whiteout", "whiteouts", "xwhiteouts",
		"verity", "xattr",    MTIME,	  MODE
	};

	if (!overlay_is_mark(attr))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(attr + strlen(OVERLAY_MARK), names[i]) == 0)
			return true;
	return false;
}

/*
 * Is @attr carried over? Marks, and attributes that the system makes or that mean nothing
 * elsewhere, are not.
 */
static bool is_kept(const char *attr)
{
	return !is_overlays(attr) && !has_prefix(attr, "trusted.overlay.") &&
	       strcmp(attr, "security.selinux") != 0;
}

static const char *plain_name(const char *attr, struct buf *tmp)
{
	if (!has_prefix(attr, OVERLAY_ESCAPED))
		return attr;
	buf_reset(tmp);
	buf_addf(tmp, OVERLAY_MARK "%s", attr + strlen(OVERLAY_ESCAPED));
	return buf_str(tmp);
}

static void pack_one(struct buf *out, const char *attr, const struct buf *value)
{
	uint32_t n[2] = { (uint32_t)strlen(attr) + 1, (uint32_t)value->len };

	buf_add(out, n, sizeof(n));
	buf_add(out, attr, n[0]);
	buf_add(out, buf_str(value), n[1]);
}

struct listed {
	const char *attr;
	char *plain;
};

static int by_plain_name(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->plain,
		      ((const struct listed *)b)->plain);
}

static void listed_free(struct listed *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].plain);
	free(v);
}

/* Sorted: the filesystem lists attributes in an order of its own, which depends on their past. */
static struct listed *list_kept(const struct buf *list, size_t *n)
{
	AUTO_BUF struct buf tmp = BUF_INIT;
	struct listed *v = NULL;

	*n = 0;
	for (const char *a = buf_str(list); a < buf_str(list) + list->len;
	     a += strlen(a) + 1) {
		if (!is_kept(a))
			continue;
		v = xrealloc(v, (*n + 1) * sizeof(*v));
		v[(*n)++] = (struct listed){ a, xstrdup(plain_name(a, &tmp)) };
	}
	if (*n > 1)
		qsort(v, *n, sizeof(*v), by_plain_name);
	return v;
}

int meta_pack(int dirfd, const char *name, struct buf *out)
{
	AUTO_BUF struct buf list = BUF_INIT, value = BUF_INIT;
	int r = fs_xattr_list(dirfd, name, &list);
	struct listed *v;
	size_t n;

	if (r < 0)
		return r;
	v = list_kept(&list, &n);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = fs_xattr_get(dirfd, name, v[i].attr, &value);
		if (r >= 0)
			pack_one(out, v[i].plain, &value);
		else if (r == -ENODATA)
			r = 0;
	}
	listed_free(v, n);
	return r < 0 ? r : 0;
}

/* Steps to the next attribute of a packed string; false at its end. */
static bool next_packed(const char **p, const char *end, const char **attr,
			const char **value, size_t *len)
{
	uint32_t n[2];

	if ((size_t)(end - *p) < sizeof(n))
		return false;
	memcpy(n, *p, sizeof(n));
	*attr = *p + sizeof(n);
	if ((size_t)(end - *attr) < (size_t)n[0] + n[1])
		return false;
	*value = *attr + n[0];
	*len = n[1];
	*p = *value + n[1];
	return true;
}

struct value {
	const char *p; /* NULL: the attribute is not there */
	size_t n;
};

static struct value value_of(const char *packed, size_t len, const char *attr)
{
	const char *p = packed, *a;
	struct value v;

	while (next_packed(&p, packed + len, &a, &v.p, &v.n))
		if (strcmp(a, attr) == 0)
			return v;
	return (struct value){ 0 };
}

static bool same_value(struct value a, struct value b)
{
	if (!a.p || !b.p)
		return !a.p && !b.p;
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static bool is_packed(const char *packed, size_t len, const char *attr)
{
	return value_of(packed, len, attr).p;
}

/* An ACL as the kernel stores it: a version, then an entry for each permission. */
static bool acl_names_others(const char *v, size_t n)
{
	enum { USER = 2, GROUP = 8 };
	struct {
		uint16_t tag, perm;
		uint32_t id;
	} e;

	for (size_t at = sizeof(uint32_t); at + sizeof(e) <= n; at += sizeof(e)) {
		memcpy(&e, v + at, sizeof(e));
		if ((e.tag == USER && e.id != geteuid()) ||
		    (e.tag == GROUP && e.id != getegid()))
			return true;
	}
	return false;
}

bool meta_names_others(const char *packed, size_t len)
{
	const char *p = packed, *a, *v;
	size_t n;

	while (next_packed(&p, packed + len, &a, &v, &n))
		if (has_prefix(a, "system.posix_acl_") && acl_names_others(v, n))
			return true;
	return false;
}

/* Setting an attribute of the user class needs write permission, which the owner may lack. */
static int set_attr(const struct handle *h, const char *attr, const void *v, size_t n)
{
	if (setxattr(h->path, attr, v, n, 0) == 0)
		return 0;
	return errno == EACCES ? ns_xattr_override(h->fd, attr, v, n) : -errno;
}

static int drop_attr(const struct handle *h, const char *attr)
{
	int r;

	if (removexattr(h->path, attr) == 0)
		return 0;
	r = errno == EACCES ? ns_xattr_override(h->fd, attr, NULL, 0) : -errno;
	return r == -ENODATA ? 0 : r;
}

int meta_unpack(int dirfd, const char *name, const char *packed, size_t len)
{
	AUTO_HANDLE struct handle h = { .fd = -1 };
	AUTO_BUF struct buf list = BUF_INIT;
	const char *p = packed, *a, *v;
	size_t n;
	int r = handle_open(dirfd, name, &h);

	if (r == 0)
		r = fs_fd_xattr_list(h.fd, &list);
	if (r < 0)
		return r;
	for (a = buf_str(&list); a < buf_str(&list) + list.len; a += strlen(a) + 1)
		if (is_kept(a) && !is_packed(packed, len, a)) {
			r = FAULT_POINT("meta.removexattr");
			if (r == 0)
				r = drop_attr(&h, a);
			if (r < 0)
				return r;
		}
	while (r == 0 && next_packed(&p, packed + len, &a, &v, &n)) {
		r = FAULT_POINT("meta.setxattr");
		if (r == 0)
			r = set_attr(&h, a, v, n);
	}
	return r;
}

int meta_change(int dirfd, const char *name, const char *from, size_t nfrom,
		const char *to, size_t nto)
{
	AUTO_HANDLE struct handle h = { .fd = -1 };
	const char *p = from, *a;
	struct value v;
	int r = handle_open(dirfd, name, &h);

	while (r == 0 && next_packed(&p, from + nfrom, &a, &v.p, &v.n)) {
		if (is_packed(to, nto, a))
			continue;
		r = FAULT_POINT("meta.removexattr");
		if (r == 0)
			r = drop_attr(&h, a);
	}
	p = to;
	while (r == 0 && next_packed(&p, to + nto, &a, &v.p, &v.n)) {
		if (same_value(v, value_of(from, nfrom, a)))
			continue;
		r = FAULT_POINT("meta.setxattr");
		if (r == 0)
			r = set_attr(&h, a, v.p, v.n);
	}
	return r;
}

/*
 * Does @now have, of each attribute that differs between @one and @other, the value that @one
 * has?
 */
static bool is_one_of(const struct buf *now, const char *one, size_t none,
		      const char *other, size_t nother)
{
	const char *p = one, *a;
	struct value v;

	while (next_packed(&p, one + none, &a, &v.p, &v.n)) {
		struct value is = value_of(buf_str(now), now->len, a);
		struct value w = value_of(other, nother, a);

		if (!same_value(v, w) && !same_value(is, v) && !same_value(is, w))
			return false;
	}
	return true;
}

int meta_is_either(int dirfd, const char *name, const char *one, size_t none,
		   const char *other, size_t nother)
{
	AUTO_BUF struct buf now = BUF_INIT;
	int r = meta_pack(dirfd, name, &now);

	return r < 0 ? r
		     : is_one_of(&now, one, none, other, nother) &&
			       is_one_of(&now, other, nother, one, none);
}

void meta_turn(const struct buf *now, const char *from, size_t nfrom, const char *to,
	       size_t nto, struct buf *out)
{
	const char *p = buf_str(now), *end = p + now->len, *a;
	AUTO_BUF struct buf value = BUF_INIT;
	struct value v;

	while (next_packed(&p, end, &a, &v.p, &v.n)) {
		if (!same_value(value_of(from, nfrom, a), value_of(to, nto, a)))
			continue;
		buf_reset(&value);
		buf_add(&value, v.p, v.n);
		pack_one(out, a, &value);
	}
	for (p = to; next_packed(&p, to + nto, &a, &v.p, &v.n);) {
		if (same_value(value_of(from, nfrom, a), v))
			continue;
		buf_reset(&value);
		buf_add(&value, v.p, v.n);
		pack_one(out, a, &value);
	}
}

bool meta_is_plain(int parent, const struct buf *now, const char *known, size_t nknown)
{
	const char *p = buf_str(now), *end = p + now->len, *a;
	AUTO_BUF struct buf acl = BUF_INIT;
	struct value v, given = { 0 };

	if (now->len && fs_xattr_get(parent, ".", "system.posix_acl_default", &acl) >= 0)
		given = (struct value){ buf_str(&acl), acl.len };
	while (next_packed(&p, end, &a, &v.p, &v.n)) {
		if (same_value(v, value_of(known, nknown, a)))
			continue;
		/* The access ACL is made of the default one and the mode, which is compared
		 * elsewhere. */
		if (!given.p || (strcmp(a, "system.posix_acl_access") != 0 &&
				 (strcmp(a, "system.posix_acl_default") != 0 ||
				  !same_value(v, given))))
			return false;
	}
	return true;
}

int meta_stamp(int dirfd, const char *name)
{
	struct timespec t[2];
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	t[0] = st.st_atim;
	t[1] = st.st_mtim;
	if (FAULT_AT("meta.stamp") || utimensat(dirfd, name, t, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == EPERM || errno == EACCES ? 0 : -errno;
	return 0;
}

static int set_owner(const struct handle *h, const struct ident *now,
		     const struct ident *to, bool lax)
{
	if (now->uid == to->uid && now->gid == to->gid)
		return 0;
	if (!FAULT_AT("meta.chown") && fchownat(h->fd, "", to->uid, to->gid,
						AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return lax && errno == EPERM ? 0 : -errno;
}

int meta_own(int dirfd, const char *name, const struct ident *to, bool lax)
{
	AUTO_HANDLE struct handle h = { .fd = -1 };
	struct ident now;
	int r = handle_open(dirfd, name, &h);

	if (r == 0)
		r = ident_at(h.fd, "", &now);
	if (r == 0)
		r = set_owner(&h, &now, to, lax);
	return r < 0 ? r : 0;
}

int meta_set(int dirfd, const char *name, const struct ident *to, bool lax)
{
	AUTO_HANDLE struct handle h = { .fd = -1 };
	struct timespec t[2];
	struct ident now;
	struct stat st;
	bool theirs;
	int r = FAULT_POINT("meta.open");

	if (r == 0)
		r = handle_open(dirfd, name, &h);
	if (r == 0)
		r = ident_at(h.fd, "", &now);
	if (r == 0)
		r = set_owner(&h, &now, to, lax);
	if (r < 0)
		return r;
	theirs = lax && r == 0 && now.uid != geteuid();
	/* A change of owner clears setuid bits: the mode comes after it. */
	if (!S_ISLNK(now.mode) && (r > 0 || now.mode != to->mode) &&
	    (FAULT_AT("meta.chmod") || chmod(h.path, to->mode & 07777) < 0))
		return -errno;
	if (now.mtime == to->mtime && r == 0)
		return 0;
	/* Both times: some filesystems in user space ignore UTIME_OMIT and all with it. */
	if (fstat(h.fd, &st) < 0)
		return -errno;
	t[0] = st.st_atim;
	t[1] = ident_time(to->mtime);
	if (FAULT_AT("meta.utimes") || utimensat(dirfd, name, t, AT_SYMLINK_NOFOLLOW) < 0)
		return theirs && errno == EPERM ? 0 : -errno;
	return 0;
}

static int strip_one(const struct handle *h, const char *list, size_t len)
{
	AUTO_BUF struct buf value = BUF_INIT, tmp = BUF_INIT;
	int r;

	for (const char *a = list; a < list + len; a += strlen(a) + 1) {
		if (!is_overlays(a) && !has_prefix(a, OVERLAY_ESCAPED))
			continue;
		if (!is_overlays(a)) {
			r = fs_fd_xattr_get(h->fd, a, &value);
			if (r < 0)
				return r;
			r = FAULT_POINT("meta.unescape");
			if (r == 0)
				r = set_attr(h, plain_name(a, &tmp), buf_str(&value),
					     value.len);
			if (r < 0)
				return r;
		}
		r = FAULT_POINT("meta.unmark");
		if (r == 0)
			r = drop_attr(h, a);
		if (r < 0)
			return r;
	}
	return 0;
}

struct strip {
	unsigned from_gid, gid;
	uint64_t *objects, *touched;
	struct buf list;
};

static int strip_dir(struct strip *s, int dirfd, const char *name);

/*
 * A change of the group clears the setuid bits: the mode is noted as an attribute until it is
 * set again.
 */
static int strip_group(const struct strip *s, const struct handle *h,
		       const struct stat *st)
{
	uint32_t mode = st->st_mode & 07777;
	bool noted = S_ISREG(st->st_mode) && getxattr(h->path, OVERLAY_MARK MODE, &mode,
						      sizeof(mode)) == sizeof(mode);
	bool due = st->st_gid == s->from_gid;
	int r = 0;

	if (due && !noted && S_ISREG(st->st_mode) && mode & 06000)
		r = FAULT_AT("meta.note-mode")
			    ? -errno
			    : set_attr(h, OVERLAY_MARK MODE, &mode, sizeof(mode));
	if (r == 0 && due &&
	    (FAULT_AT("meta.strip-chown") ||
	     fchownat(h->fd, "", (uid_t)-1, s->gid, AT_EMPTY_PATH) < 0) &&
	    errno != EPERM && errno != EINVAL)
		r = -errno;
	if (r == 0 && (due || noted) && mode & 06000 && !S_ISLNK(st->st_mode) &&
	    (FAULT_AT("meta.strip-chmod") || chmod(h->path, mode) < 0))
		r = -errno;
	return r;
}

static int strip_object(struct strip *s, int dirfd, const char *name)
{
	AUTO_HANDLE struct handle h = { .fd = -1 };
	struct stat st;
	int r;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(*s->objects)++;
	if (S_ISDIR(st.st_mode)) {
		r = strip_dir(s, dirfd, name);
		if (r < 0)
			return r;
	}
	if (s->gid != (unsigned)-1 && s->gid != s->from_gid &&
	    (st.st_gid == s->from_gid || st.st_gid == s->gid)) {
		(*s->touched)++;
		r = handle_open(dirfd, name, &h);
		if (r == 0)
			r = strip_group(s, &h, &st);
		if (r < 0)
			return r;
	}
	/* Only files and directories can carry attributes of the user class. */
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	r = fs_xattr_list(dirfd, name, &s->list);
	if (r < 0 || !s->list.len)
		return r;
	(*s->touched)++;
	if (h.fd < 0)
		r = handle_open(dirfd, name, &h);
	return r < 0 ? r : strip_one(&h, buf_str(&s->list), s->list.len);
}

/*
 * Taking a whiteout out changes the mtime of the directory. The mtime is noted as an attribute
 * first, so that a later call finds the right one after an interruption. Fills in @t.
 */
static int note_mtime(int fd, const struct stat *st, bool whiteouts, struct timespec t[2],
		      bool *noted)
{
	t[0] = st->st_atim;
	t[1] = st->st_mtim;
	*noted = fgetxattr(fd, OVERLAY_MARK MTIME, &t[1], sizeof(t[1])) == sizeof(t[1]);
	if (*noted || !whiteouts)
		return 0;
	*noted = true;
	if (FAULT_AT("meta.note-mtime") ||
	    fsetxattr(fd, OVERLAY_MARK MTIME, &t[1], sizeof(t[1]), 0) < 0)
		return -errno;
	return 0;
}

int meta_note_mtime(int fd, const struct stat *st, struct timespec t[2])
{
	bool noted;

	return note_mtime(fd, st, true, t, &noted);
}

int meta_drop_mtime(int fd)
{
	return (FAULT_AT("meta.drop-mtime") ||
		fremovexattr(fd, OVERLAY_MARK MTIME) < 0) &&
			       errno != ENODATA
		       ? -errno
		       : 0;
}

static bool has_whiteouts(int fd, const struct fs_names *names)
{
	struct stat st;

	for (size_t i = 0; i < names->n; i++)
		if (fstatat(fd, names->v[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    overlay_is_whiteout(&st))
			return true;
	return false;
}

static int strip_dir(struct strip *s, int dirfd, const char *name)
{
	AUTO_CLOSE int fd = -1;
	struct timespec times[2];
	struct fs_names names;
	bool noted = false;
	struct stat st;
	int r;

	do {
		fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} while (fd < 0 && errno == EACCES && ns_gain_override() == 0);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = fs_names_read(fd, &names);
	if (r < 0)
		return r;
	r = note_mtime(fd, &st, has_whiteouts(fd, &names), times, &noted);
	for (size_t i = 0; i < names.n && r == 0; i++) {
		struct stat sub;

		if (fstatat(fd, names.v[i], &sub, AT_SYMLINK_NOFOLLOW) < 0) {
			r = -errno;
		} else if (overlay_is_whiteout(&sub)) {
			(*s->touched)++;
			r = FAULT_AT("meta.strip-unlink") ||
					    unlinkat(fd, names.v[i], 0) < 0
				    ? -errno
				    : 0;
		} else {
			r = strip_object(s, fd, names.v[i]);
		}
	}
	fs_names_free(&names);
	if (r == 0 && noted && (FAULT_AT("meta.strip-utimes") || futimens(fd, times) < 0))
		r = -errno;
	return r;
}

int meta_strip(int dirfd, const char *name, unsigned from_gid, unsigned gid,
	       uint64_t *objects, uint64_t *touched)
{
	struct strip s = {
		.from_gid = from_gid, .gid = gid, .objects = objects, .touched = touched
	};
	int r = FAULT_POINT("meta.strip");

	if (r == 0)
		r = strip_object(&s, dirfd, name);
	buf_free(&s.list);
	return r;
}

bool meta_is_copy(int dirfd, const char *name)
{
	AUTO_BUF struct buf v = BUF_INIT;

	return fs_xattr_get(dirfd, name, OVERLAY_ORIGIN, &v) == 0;
}

/* The start of the `origin` attribute as overlayfs writes it; the file handle follows. */
struct origin {
	uint8_t version, magic, len, flags, type, uuid[16];
};
enum { ORIGIN_MAGIC = 0xfb };

int meta_came_from(int upper, int host)
{
	AUTO_BUF struct buf v = BUF_INIT;
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} now = { .h.handle_bytes = MAX_HANDLE_SZ };
	struct origin o;
	int mount;

	if (fs_fd_xattr_get(upper, OVERLAY_ORIGIN, &v) < 0 || v.len <= sizeof(o) ||
	    name_to_handle_at(host, "", &now.h, &mount, AT_EMPTY_PATH) < 0)
		return -1;
	memcpy(&o, buf_str(&v), sizeof(o));
	if (o.magic != ORIGIN_MAGIC || o.len != v.len || o.type != now.h.handle_type ||
	    v.len - sizeof(o) != now.h.handle_bytes)
		return -1;
	return memcmp(buf_str(&v) + sizeof(o), now.h.f_handle, now.h.handle_bytes) == 0;
}

void meta_unmark_copy(int fd)
{
	(void)!fremovexattr(fd, OVERLAY_ORIGIN);
}

bool meta_is_opaque(int dirfd, const char *name)
{
	AUTO_BUF struct buf v = BUF_INIT;

	return fs_xattr_get(dirfd, name, OVERLAY_OPAQUE, &v) == 0 && v.len == 1 &&
	       v.data[0] == 'y';
}

int meta_set_opaque(int dirfd, const char *name, bool on)
{
	AUTO_HANDLE struct handle h = { .fd = -1 };
	int r = handle_open(dirfd, name, &h);

	if (r < 0)
		return r;
	if (on)
		return setxattr(h.path, OVERLAY_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
	return removexattr(h.path, OVERLAY_OPAQUE) < 0 && errno != ENODATA ? -errno : 0;
}

/* Goes down level by level while there are descriptors; deeper marks are left. */
static void unmark_dir(int at, const char *name, struct buf *list)
{
	AUTO_CLOSE int fd = openat(at, name,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSEDIR DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!d)
		return;
	TAKE_FD(fd);
	while ((de = readdir(d))) {
		char path[32];
		int file;

		if (de->d_type == DT_DIR && strcmp(de->d_name, ".") != 0 &&
		    strcmp(de->d_name, "..") != 0)
			unmark_dir(dirfd(d), de->d_name, list);
		if (de->d_type != DT_REG ||
		    fs_xattr_get(dirfd(d), de->d_name, OVERLAY_ORIGIN, list) < 0)
			continue;
		file = openat(dirfd(d), de->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
		if (file >= 0)
			(void)!removexattr(path, OVERLAY_ORIGIN);
		cleanup_close(&file);
	}
}

void meta_unmark(int upper)
{
	AUTO_BUF struct buf value = BUF_INIT;

	unmark_dir(upper, ".", &value);
}
