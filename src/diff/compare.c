/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "layer/overlay.h"
#include "sys/fs.h"

enum { ROUGH_MIN = 1 << 20 };

void scratch_free(struct scratch *s)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s->block); i++)
		free(s->block[i]);
	for (i = 0; i < ARRAY_SIZE(s->text); i++)
		buf_free(&s->text[i]);
	*s = (struct scratch){ 0 };
}

/*
 * Errors of an open or read that mean that another type of object took the place of the file.
 * Telling it by the error saves a stat for each file.
 */
static int gone(int r)
{
	return r == -ELOOP || r == -ENXIO || r == -ESPIPE || r == -EISDIR ? -ESTALE : r;
}

int compare_open(int dir, const char *name)
{
	AUTO_CLOSE int fd = fs_open_read(dir, name);
	struct stat st;

	if (fd < 0)
		return gone(TAKE_FD(fd));
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESTALE;
	return TAKE_FD(fd);
}

/* Reads until @n bytes are there or the file ends; bytes read, or -errno. */
static ssize_t read_block(int fd, char *to, size_t n, off_t at)
{
	size_t have = 0;

	while (have < n) {
		ssize_t r = pread(fd, to + have, n - have, at + (off_t)have);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		have += (size_t)r;
	}
	return (ssize_t)have;
}

static bool is_sparse(const struct stat *st)
{
	return (off_t)st->st_blocks * 512 < st->st_size;
}

static off_t next_data(int fd, off_t at, off_t size)
{
	off_t d = lseek(fd, at, SEEK_DATA);

	if (d >= 0)
		return d;
	return errno == ENXIO ? size : at;
}

/* Compares two files of @size bytes. 1: equal. */
static int compare_files(int a, int b, off_t size, bool sparse, struct scratch *s)
{
	off_t at = 0;
	size_t i;

	for (i = 0; i < 2; i++)
		if (!s->block[i])
			s->block[i] = xmalloc(COMPARE_BLOCK);
	while (at < size) {
		size_t want = COMPARE_BLOCK;
		ssize_t n, m;

		if (sparse) {
			off_t da = next_data(a, at, size), db = next_data(b, at, size);

			at = da < db ? da : db;
			if (at >= size)
				break;
		}
		if ((off_t)want > size - at)
			want = (size_t)(size - at);
		n = read_block(a, s->block[0], want, at);
		if (n < 0)
			return (int)n;
		m = read_block(b, s->block[1], want, at);
		if (m < 0)
			return (int)m;
		if (n != m || memcmp(s->block[0], s->block[1], (size_t)n) != 0)
			return 0;
		if (n == 0)
			break; /* both were cut short meanwhile */
		at += n;
	}
	return 1;
}

static int compare_links(const struct object *a, const struct object *b,
			 struct scratch *s)
{
	int r = fs_readlink(a->dir, a->name, &s->text[0]);

	if (r == 0)
		r = fs_readlink(b->dir, b->name, &s->text[1]);
	if (r < 0)
		return r == -EINVAL ? -ESTALE : r;
	return s->text[0].len == s->text[1].len &&
	       !memcmp(buf_str(&s->text[0]), buf_str(&s->text[1]), s->text[0].len);
}

int compare_content(const struct object *a, const struct object *b, struct scratch *s)
{
	AUTO_CLOSE int fa = -1;
	AUTO_CLOSE int fb = -1;

	if (S_ISLNK(a->st->st_mode))
		return compare_links(a, b, s);
	if (a->st->st_size != b->st->st_size)
		return 0;
	if (a->st->st_size == 0)
		return 1;
	fa = fs_open_read(a->dir, a->name);
	if (fa < 0)
		return gone(TAKE_FD(fa));
	fb = fs_open_read(b->dir, b->name);
	if (fb < 0)
		return gone(TAKE_FD(fb));
	return gone(compare_files(fa, fb, a->st->st_size,
				  is_sparse(a->st) && is_sparse(b->st), s));
}

static char *unescape(const char *attr)
{
	return xasprintf(OVERLAY_MARK "%s", attr + strlen(OVERLAY_ESCAPED));
}

/*
 * Does the attribute belong to the file for its owner? The others are the kernel's own
 * (labels, measurements), made anew with each object.
 */
static bool counts(const char *attr)
{
	if (!strncmp(attr, OVERLAY_MARK, strlen(OVERLAY_MARK)))
		return overlay_is_escaped(attr);
	return !strncmp(attr, "user.", 5) || !strncmp(attr, "system.posix_acl_", 17) ||
	       !strcmp(attr, "security.capability");
}

/*
 * The value of the host's attribute that @attr of the upper stands for. A copy-up keeps
 * escaped names as they are; an attribute that the sandbox has set itself is meant without the
 * escape.
 */
static int host_value(const struct object *host, const char *attr, struct buf *out)
{
	AUTO_FREE char *plain = NULL;
	int r = fs_xattr_get(host->dir, host->name, attr, out);

	if (r != -ENODATA || !overlay_is_escaped(attr))
		return r;
	plain = unescape(attr);
	return fs_xattr_get(host->dir, host->name, plain, out);
}

/* 1: both have the same value; '~': another one; '+': the host has none; or -errno. */
static int same_value(const struct object *upper, const struct object *host,
		      const char *attr, struct buf *a, struct buf *b)
{
	int r = fs_xattr_get(upper->dir, upper->name, attr, a);
	int q;

	if (r == -ENODATA)
		return '~'; /* taken away while we looked */
	if (r < 0 && r != -EACCES && r != -EPERM)
		return r;
	q = host_value(host, attr, b);
	/*
	 * The layer may lie on a filesystem with attributes, and the host's tree on one
	 * without.
	 */
	if (q == -ENODATA || q == -EOPNOTSUPP)
		return '+';
	if (q < 0 && q != -EACCES && q != -EPERM)
		return q;
	/*
	 * An unreadable attribute: the content is unreadable, too, and was counted as changed
	 * already.
	 */
	if (r < 0 || q < 0)
		return 1;
	return a->len == b->len && !memcmp(buf_str(a), buf_str(b), a->len) ? 1 : '~';
}

static bool listed(const struct buf *list, const char *attr)
{
	size_t at, len = strlen(attr) + 1;

	for (at = 0; at < list->len; at += strlen(list->data + at) + 1)
		if (list->len - at >= len && !memcmp(list->data + at, attr, len))
			return true;
	return false;
}

bool compare_listed(const struct scratch *s, const char *attr)
{
	return listed(&s->text[0], attr);
}

bool compare_bare(const struct scratch *s)
{
	return s->text[0].len == 0;
}

static void tell(compare_xattr_fn *fn, void *arg, char how, const char *attr)
{
	AUTO_FREE char *plain = NULL;

	if (!fn)
		return;
	if (overlay_is_escaped(attr))
		attr = plain = unescape(attr);
	fn(arg, how, attr);
}

int compare_xattrs(const struct object *upper, const struct object *host,
		   struct scratch *s, compare_xattr_fn *fn, void *arg)
{
	struct buf *mine = &s->text[0], *theirs = &s->text[1];
	const char *p;
	int r, same = 1;

	if (S_ISLNK(upper->st->st_mode))
		return 1; /* links have none that count */
	buf_reset(theirs);
	r = fs_xattr_list(upper->dir, upper->name, mine);
	if (r == 0 && host)
		r = fs_xattr_list(host->dir, host->name, theirs);
	if (r < 0)
		return r;
	for (p = mine->data; p < mine->data + mine->len && (fn || same);
	     p += strlen(p) + 1) {
		if (!counts(p))
			continue;
		r = host ? same_value(upper, host, p, &s->text[2], &s->text[3]) : '+';
		if (r < 0)
			return r;
		if (r == 1)
			continue;
		same = 0;
		tell(fn, arg, (char)r, p);
	}
	for (p = theirs->data; p < theirs->data + theirs->len && (fn || same);
	     p += strlen(p) + 1) {
		if (!counts(p) || listed(mine, p))
			continue;
		same = 0;
		tell(fn, arg, '-', p);
	}
	return same;
}

bool compare_owner(const struct change_layer *l, const struct stat *up,
		   const struct stat *host)
{
	if (up->st_uid != host->st_uid && !(l->lax_owner && up->st_uid == l->uid))
		return false;
	return up->st_gid == host->st_gid || (l->lax_owner && up->st_gid == l->gid);
}

static bool same_mode(const struct change_layer *l, const struct stat *up,
		      const struct stat *host)
{
	mode_t diff = (up->st_mode ^ host->st_mode) & 07777;

	if (S_ISLNK(up->st_mode))
		return true;
	/*
	 * A directory of another user is shown inside as the user's own, and its owner bits
	 * say what the user may do there: no process inside has set them.
	 */
	if (l->lax_owner && S_ISDIR(up->st_mode) && up->st_uid == l->uid &&
	    host->st_uid != l->uid)
		diff &= 07077;
	return diff == 0;
}

static bool same_mtime(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/*
 * Is the mtime another one, and the file so large that reading both would take long? Then it
 * counts as written.
 */
static bool is_surely_written(const struct change_layer *l, const struct object *upper,
			      const struct object *host)
{
	return l->rough && S_ISREG(upper->st->st_mode) &&
	       upper->st->st_size > ROUGH_MIN && !same_mtime(upper->st, host->st);
}

static int same_content(const struct change_layer *l, const struct object *upper,
			const struct object *host, struct scratch *s)
{
	int r;

	if (is_surely_written(l, upper, host))
		return 0;
	switch (upper->st->st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFLNK:
		r = compare_content(upper, host, s);
		return r == -EACCES || r == -EPERM ? 0 : r;
	case S_IFCHR:
	case S_IFBLK:
		return upper->st->st_rdev == host->st->st_rdev;
	default:
		return 1;
	}
}

int compare_objects(const struct change_layer *l, const struct object *upper,
		    const struct object *host, struct scratch *s, unsigned *what)
{
	int r;

	*what = 0;
	if (!same_mode(l, upper->st, host->st))
		*what |= CHANGE_MODE;
	if (!compare_owner(l, upper->st, host->st))
		*what |= CHANGE_OWNER;
	if (!S_ISDIR(upper->st->st_mode) && !same_mtime(upper->st, host->st))
		*what |= CHANGE_TIMES;
	r = same_content(l, upper, host, s);
	if (r < 0)
		return r;
	if (!r)
		*what |= CHANGE_CONTENT;
	if (!r && l->brief && S_ISREG(upper->st->st_mode)) /* for compare_bare() */
		return fs_xattr_list(upper->dir, upper->name, &s->text[0]);
	r = compare_xattrs(upper, host, s, NULL, NULL);
	if (r < 0)
		return r;
	if (!r)
		*what |= CHANGE_XATTR;
	return 0;
}
