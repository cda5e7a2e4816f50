/* SPDX-License-Identifier: Apache-2.0 */
#include "change/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "change/apply_parts.h"
#include "change/copy.h"
#include "change/meta.h"
#include "sys/fs.h"
#include "sys/ns.h"

/* A name in the upper of an inode that has several. */
struct name {
	uint64_t ino;
	uint64_t nlink;
	char *rel;
};

struct names {
	int up, old;
	struct name *v;
	size_t n;
	struct buf rel; /* of the directory at hand */
};

static int collect(struct names *s, int dir);

/* overlayfs gives all its whiteouts one inode: those are nobody's. */
static bool counts(const struct stat *st)
{
	return st->st_nlink > 1 && !S_ISDIR(st->st_mode) && !S_ISCHR(st->st_mode) &&
	       !S_ISBLK(st->st_mode);
}

static int collect_dir(struct names *s, int dir, const char *name)
{
	AUTO_CLOSE int fd = fs_open_dir_here(dir, name, O_RDONLY);

	return fd < 0 ? TAKE_FD(fd) : collect(s, fd);
}

static int collect(struct names *s, int dir)
{
	struct fs_names names;
	size_t len = s->rel.len;
	int r = fs_names_read(dir, &names);

	if (r < 0)
		return r;
	for (size_t i = 0; i < names.n && r == 0; i++) {
		struct stat st;

		if (fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
			r = errno == ENOENT ? 0 : -errno;
			continue;
		}
		buf_addf(&s->rel, "%s%s", len ? "/" : "", names.v[i]);
		if (S_ISDIR(st.st_mode)) {
			r = collect_dir(s, dir, names.v[i]);
		} else if (counts(&st)) {
			if ((s->n & (s->n - 1)) == 0)
				s->v = xrealloc(s->v,
						(s->n ? 2 * s->n : 16) * sizeof(*s->v));
			s->v[s->n++] = (struct name){ st.st_ino, st.st_nlink,
						      xstrdup(buf_str(&s->rel)) };
		}
		buf_truncate(&s->rel, len);
	}
	fs_names_free(&names);
	return r;
}

static int by_inode(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->ino != y->ino ? (x->ino < y->ino ? -1 : 1) : strcmp(x->rel, y->rel);
}

/* In place of the old one at once, and the directory's time stays. */
static int put(const struct names *s, int dir, const char *base)
{
	struct timespec times[2];
	struct stat st;
	int r = fstat(dir, &st) < 0 ? -errno : meta_note_mtime(dir, &st, times);

	if (r == 0)
		r = apply_rename(s->old, "own", dir, base, 0);
	if (r == 0 && futimens(dir, times) < 0)
		r = -errno;
	return r == 0 ? meta_drop_mtime(dir) : r;
}

/* @first: the name that has its own already; NULL: this is the first. */
static int give_own(const struct names *s, const char *rel, const char *first)
{
	const char *slash = strrchr(rel, '/'), *base = slash ? slash + 1 : rel;
	AUTO_FREE char *parent = slash ? xstrndup(rel, (size_t)(slash - rel))
				       : xstrdup(".");
	AUTO_CLOSE int dir = -1, from = -1;
	const char *first_base;
	uint64_t objects = 0;
	int r;

	dir = fs_open_beneath(s->up, parent, O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		return TAKE_FD(dir);
	if (unlinkat(s->old, "own", 0) < 0 && errno != ENOENT)
		return -errno;
	if (first) {
		from = fs_open_parent(s->up, first, &first_base);
		if (from < 0)
			return TAKE_FD(from);
		r = linkat(from, first_base, s->old, "own", 0) < 0 ? -errno : 0;
	} else {
		r = copy_object(dir, base, s->old, "own", &objects);
	}
	return r == 0 ? put(s, dir, base) : r;
}

static int give_all(const struct names *s)
{
	int r = 0;

	for (size_t i = 0, k; i < s->n && r == 0; i = k) {
		for (k = i; k < s->n && s->v[k].ino == s->v[i].ino; k++)
			;
		for (size_t m = i; k - i < s->v[i].nlink && m < k && r == 0; m++)
			r = give_own(s, s->v[m].rel, m == i ? NULL : s->v[i].rel);
	}
	return r;
}

static int own(void *arg)
{
	const struct change_layer *l = arg;
	AUTO_FREE char *old = xasprintf("%.*sold", (int)(strlen(l->upper) - 2), l->upper);
	struct names s = { .rel = BUF_INIT };
	AUTO_CLOSE int list = -1;
	int r;

	s.up = open(l->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	s.old = open(old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s.up >= 0)
		list = openat(s.up, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* Where nothing was ever committed there is no `old`. */
	r = s.up < 0 || (s.old < 0 && errno != ENOENT) || list < 0 ? -errno : 0;
	if (r == 0 && s.old >= 0)
		r = collect(&s, list);
	if (r == 0 && s.n) {
		qsort(s.v, s.n, sizeof(*s.v), by_inode);
		r = give_all(&s);
	}
	for (size_t i = 0; i < s.n; i++)
		free(s.v[i].rel);
	free(s.v);
	buf_free(&s.rel);
	cleanup_close(&s.up);
	cleanup_close(&s.old);
	return r;
}

int own_layer(const struct change_layer *l)
{
	struct change_layer copy = *l;
	int r = own(&copy);

	/* Directories that their owner may not enter: by a child that may. */
	return r == -EACCES || r == -EPERM ? ns_try_override(own, &copy) : r;
}
