/* SPDX-License-Identifier: Apache-2.0 */
#include "layer/unshare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "layer/copy.h"
#include "layer/meta.h"
#include "sys/fs.h"
#include "sys/move.h"
#include "sys/ns.h"
#include "sys/rmtree.h"

/*
 * A directory in `old` that exists while the work goes on. It has the new inode of each old
 * one, named after the identity of the old one, until all names have been replaced. A process
 * that finds it after a crash goes on with those inodes: otherwise the names that are left
 * would become another file.
 */
#define OWN "own"
#define NEW "new" /* in it: what is on its way */
enum { WAITING = 4 * 17 };

/* A name in the upper whose inode has several names. */
struct name {
	struct ident id;
	char *rel;
};

struct names {
	int up, old;
	int own; /* OWN; -ENOENT: not there */
	struct name *v;
	size_t n;
	struct buf rel; /* of the directory at hand */
};

static int collect(struct names *s, int dir);

/* overlayfs gives all its whiteouts one inode: they are not shared with the host. */
static bool counts(const struct ident *id)
{
	return id->nlink > 1 && !S_ISDIR(id->mode) && !S_ISCHR(id->mode) &&
	       !S_ISBLK(id->mode);
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
		struct ident id;

		r = ident_at(dir, names.v[i], &id);
		if (r < 0 || !id.mode)
			continue;
		buf_addf(&s->rel, "%s%s", len ? "/" : "", names.v[i]);
		if (S_ISDIR(id.mode)) {
			r = collect_dir(s, dir, names.v[i]);
		} else if (counts(&id)) {
			if ((s->n & (s->n - 1)) == 0)
				s->v = xrealloc(s->v,
						(s->n ? 2 * s->n : 16) * sizeof(*s->v));
			s->v[s->n++] = (struct name){ id, xstrdup(buf_str(&s->rel)) };
		}
		buf_truncate(&s->rel, len);
	}
	fs_names_free(&names);
	return r;
}

static int by_inode(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return x->id.ino != y->id.ino ? (x->id.ino < y->id.ino ? -1 : 1)
				      : strcmp(x->rel, y->rel);
}

static void waiting_name(char name[WAITING], const struct ident *id)
{
	snprintf(name, WAITING, "%llx-%llx-%llx-%llx", (unsigned long long)id->ino,
		 (unsigned long long)id->btime, (unsigned long long)id->mtime,
		 (unsigned long long)id->size);
}

/* Replaces the old name in one step; the mtime of the directory stays. */
static int put(const struct names *s, int dir, const char *base)
{
	struct timespec times[2];
	struct stat st;
	int r = fstat(dir, &st) < 0 ? -errno : meta_note_mtime(dir, &st, times);

	if (r == 0)
		r = move_name(s->own, NEW, dir, base, 0);
	if (r == 0 && futimens(dir, times) < 0)
		r = -errno;
	return r == 0 ? meta_drop_mtime(dir) : r;
}

static int clear(const struct names *s)
{
	return unlinkat(s->own, NEW, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int open_parent(const struct names *s, const char *rel, const char **base)
{
	const char *slash = strrchr(rel, '/');
	AUTO_FREE char *parent = slash ? xstrndup(rel, (size_t)(slash - rel))
				       : xstrdup(".");

	*base = slash ? slash + 1 : rel;
	return fs_open_beneath(s->up, parent, O_RDONLY | O_DIRECTORY);
}

/* Makes a new inode like that of @rel under the name @waiting, whole or not at all. */
static int prepare(const struct names *s, const char *rel, const char *waiting)
{
	const char *base;
	AUTO_CLOSE int dir = open_parent(s, rel, &base);
	uint64_t objects = 0;
	int r = dir < 0 ? dir : clear(s);

	if (r == 0 && faccessat(s->own, waiting, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (r == 0)
		r = copy_object(dir, base, s->own, NEW, &objects);
	return r == 0 ? move_name(s->own, NEW, s->own, waiting, RENAME_NOREPLACE) : r;
}

static int give(const struct names *s, const char *rel, const char *waiting)
{
	const char *base;
	AUTO_CLOSE int dir = open_parent(s, rel, &base);
	int r = dir < 0 ? dir : clear(s);

	if (r == 0 && linkat(s->own, waiting, s->own, NEW, 0) < 0)
		r = -errno;
	return r == 0 ? put(s, dir, base) : r;
}

/*
 * Names @from to @to are hard links of one inode that has names outside of the layer, too:
 * makes one copy of the inode and links all of them to it.
 */
static int give_group(struct names *s, size_t from, size_t to)
{
	char waiting[WAITING];
	int r = 0;

	if (s->own < 0) {
		if (mkdirat(s->old, OWN, 0700) < 0)
			return -errno;
		s->own = fs_open_dir_here(s->old, OWN, O_RDONLY);
		if (s->own < 0)
			return s->own;
	}
	waiting_name(waiting, &s->v[from].id);
	r = prepare(s, s->v[from].rel, waiting);
	for (size_t i = from; i < to && r == 0; i++)
		r = give(s, s->v[i].rel, waiting);
	return r == 0 && unlinkat(s->own, waiting, 0) < 0 ? -errno : r;
}

/*
 * @begun: only inodes for which a killed process has begun; otherwise all that have a name
 * outside of the layer.
 */
static int give_all(struct names *s, bool begun)
{
	char waiting[WAITING];
	int r = 0;

	for (size_t i = 0, k; i < s->n && r == 0; i = k) {
		bool wanted;

		for (k = i; k < s->n && s->v[k].id.ino == s->v[i].id.ino; k++)
			;
		waiting_name(waiting, &s->v[i].id);
		wanted = begun ? faccessat(s->own, waiting, F_OK, AT_SYMLINK_NOFOLLOW) ==
					 0
			       : k - i < s->v[i].id.nlink;
		if (wanted)
			r = give_group(s, i, k);
	}
	return r;
}

static void names_reset(struct names *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].rel);
	free(s->v);
	s->v = NULL;
	s->n = 0;
	buf_reset(&s->rel);
}

static int look(struct names *s)
{
	AUTO_CLOSE int list = openat(s->up, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	names_reset(s);
	r = list < 0 ? -errno : collect(s, list);
	if (r == 0 && s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_inode);
	return r;
}

/* Removes the directory, with inodes in it that no name is left for. */
static int drop_own(struct names *s)
{
	cleanup_close(&s->own);
	s->own = -ENOENT;
	return rmtree_at(s->old, OWN, NULL);
}

/*
 * Goes on where a killed process stopped; the waiting inodes do not count as links afterwards.
 */
static int finish(struct names *s)
{
	int r = give_all(s, true);

	if (r == 0)
		r = drop_own(s);
	return r == 0 ? look(s) : r;
}

static int own(void *arg)
{
	const struct change_layer *l = arg;
	AUTO_FREE char *old = xasprintf("%.*sold", (int)(strlen(l->upper) - 2), l->upper);
	struct names s = { .rel = BUF_INIT, .own = -1 };
	int r;

	s.up = open(l->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	s.old = open(old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Where nothing was ever committed there is no `old`. */
	r = s.up < 0 || (s.old < 0 && errno != ENOENT) ? -errno : 0;
	if (r == 0 && s.old >= 0) {
		s.own = fs_open_dir_here(s.old, OWN, O_RDONLY);
		r = s.own < 0 && s.own != -ENOENT ? s.own : look(&s);
		if (r == 0 && s.own >= 0)
			r = finish(&s);
		if (r == 0)
			r = give_all(&s, false);
		if (r == 0 && s.own >= 0)
			r = drop_own(&s);
	}
	names_reset(&s);
	buf_free(&s.rel);
	cleanup_close(&s.own);
	cleanup_close(&s.up);
	cleanup_close(&s.old);
	return r;
}

int unshare_layer(const struct change_layer *l)
{
	struct change_layer copy = *l;
	int r = own(&copy);

	/* A child with more rights does it for directories that their owner may not enter. */
	return r == -EACCES || r == -EPERM ? ns_try_override(own, &copy) : r;
}
