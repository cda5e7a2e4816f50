/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "layer/copy.h"
#include "layer/meta.h"
#include "snap/adopt_cache.h"
#include "snap/foreign.h"
#include "snap/store.h"

enum {
	ENTRIES_MAX = 2000,	     /* for a member of several groups */
	ENTRIES_FEW = 200,	     /* for anybody else */
	ENTRIES_NEAR = 64,	     /* if there was nothing a moment ago */
	ENTRIES_LOOKED = 10000,	     /* when nothing is copied any more */
	FILE_MAX = 64 * 1024 * 1024, /* larger files are not copied ahead */
	TOTAL_MAX = 256 * 1024 * 1024,
};

/* A directory made in the upper: it gets its mode when all copies are in it. */
struct made {
	char *rel;
	mode_t mode;
};

struct scan {
	int up; /* the upper */
	uid_t uid;
	gid_t gid;
	unsigned looked, most;
	uint64_t copied;
	unsigned adopted;
	/* Directories still to be read: breadth first, what is near is edited first. */
	char **queue;
	size_t head, tail, cap;
	struct made *made;
	size_t nmade;
	/* Copy nothing, and put the first object that was not copied into @left. */
	bool looking;
	char *left;
};

static void enqueue(struct scan *s, char *rel)
{
	if (s->tail == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		s->queue = xrealloc(s->queue, s->cap * sizeof(*s->queue));
	}
	s->queue[s->tail++] = rel;
}

static bool is_foreign(const struct scan *s, const struct stat *st)
{
	return st->st_uid != s->uid || st->st_gid != s->gid;
}

/*
 * The copy belongs to the user, whoever owns the host's directory. So the owner bits of a copy of
 * somebody else's directory say what the user may do there; otherwise he could suddenly write it.
 */
static mode_t seen_mode(const struct scan *s, int host, const char *rel,
			const struct stat *st)
{
	mode_t m = st->st_mode & 07777;

	if (st->st_uid == s->uid)
		return m;
	m &= 07077;
	m |= faccessat(host, rel, R_OK, AT_EACCESS) == 0 ? 0400 : 0;
	m |= faccessat(host, rel, W_OK, AT_EACCESS) == 0 ? 0200 : 0;
	m |= faccessat(host, rel, X_OK, AT_EACCESS) == 0 ? 0100 : 0;
	return m;
}

static void mode_later(struct scan *s, const char *rel, mode_t mode)
{
	if ((s->nmade & (s->nmade - 1)) == 0)
		s->made = xrealloc(s->made,
				   (s->nmade ? 2 * s->nmade : 16) * sizeof(*s->made));
	s->made[s->nmade++] = (struct made){ xstrdup(rel), mode };
}

/* Innermost directories first: the mode of an outer one may take the right to reach them. */
static int set_modes(struct scan *s)
{
	for (size_t i = s->nmade; i > 0; i--)
		if (FAULT_AT("foreign.dir-chmod") ||
		    fchmodat(s->up, s->made[i - 1].rel, s->made[i - 1].mode, 0) < 0)
			return -errno;
	return 0;
}

/* Makes the directory @rel and all above it in the upper, as the host has them but for their
 * modes. */
static int adopt_dirs(struct scan *s, int host, const char *rel)
{
	AUTO_FREE char *path = xstrdup(rel);
	struct stat st;

	for (char *p = path;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (FAULT_AT("foreign.mkdir"))
			return -errno;
		if (mkdirat(s->up, path, 0700) == 0) {
			struct timespec t[2];

			int r = FAULT_POINT("foreign.dir-attrs");

			if (r == 0)
				r = copy_attrs(host, path, s->up, path);
			if (r < 0)
				return r;
			/* An ACL among the attributes is a mode, too. */
			if (fstatat(host, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			    FAULT_AT("foreign.dir-open") ||
			    fchmodat(s->up, path, 0700, 0) < 0)
				return -errno;
			mode_later(s, path, seen_mode(s, host, path, &st));
			t[0] = st.st_atim;
			t[1] = st.st_mtim;
			if (FAULT_AT("foreign.dir-utimes") ||
			    utimensat(s->up, path, t, AT_SYMLINK_NOFOLLOW) < 0)
				return -errno;
		} else if (errno != EEXIST) {
			return -errno;
		}
		if (!c)
			return 0;
		*p = c;
	}
}

static int adopt_file(struct scan *s, int host, const char *rel, const struct stat *st)
{
	AUTO_CLOSE int in = -1, out = -1;
	char *slash = strrchr(rel, '/');
	int r;

	if (slash) {
		AUTO_FREE char *parent = xstrndup(rel, (size_t)(slash - rel));

		r = adopt_dirs(s, host, parent);
		if (r < 0)
			return r;
	}
	in = openat(host, rel, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (in < 0)
		return 0; /* may be written but not read: nothing to copy from */
	if (FAULT_AT("foreign.create"))
		return -errno;
	out = openat(s->up, rel, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (out < 0)
		return errno == EEXIST ? 0 : -errno;
	r = FAULT_POINT("foreign.copy");
	if (r == 0)
		r = copy_data(in, out, st->st_size, true);
	if (r == 0)
		r = FAULT_POINT("foreign.attrs");
	if (r == 0)
		r = copy_attrs(host, rel, s->up, rel);
	if (r == 0)
		r = FAULT_POINT("foreign.chmod");
	if (r == 0 && fchmod(out, st->st_mode & 07777) < 0)
		r = -errno;
	if (r == 0)
		r = FAULT_POINT("foreign.utimes");
	if (r == 0 && futimens(out, (struct timespec[]){ st->st_atim, st->st_mtim }) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(s->up, rel, 0);
	return r;
}

/* New entries in the directories above @rel have moved their times. */
static int keep_times(struct scan *s, int host, const char *rel)
{
	AUTO_FREE char *path = xstrdup(rel);
	struct stat st;

	for (char *p = strrchr(path, '/'); p; p = strrchr(path, '/')) {
		*p = '\0';
		if (fstatat(host, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    FAULT_AT("foreign.keep-times") ||
		    utimensat(s->up, path, (struct timespec[]){ st.st_atim, st.st_mtim },
			      AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return 0;
}

/* Is @rel in the layer's own mount, and not the root of another one? */
static bool is_in_mount(int host, const char *rel)
{
	struct statx top, sx;

	return statx(host, "", AT_EMPTY_PATH, STATX_MNT_ID, &top) == 0 &&
	       statx(host, rel, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_MNT_ID,
		     &sx) == 0 &&
	       top.stx_mask & sx.stx_mask & STATX_MNT_ID &&
	       top.stx_mnt_id == sx.stx_mnt_id;
}

/* 1: @rel is not in the upper, and the search is over. */
static int note_left(struct scan *s, int host, const char *rel)
{
	struct stat st;

	if (fstatat(s->up, rel, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT ||
	    !is_in_mount(host, rel))
		return 0;
	s->left = xstrdup(rel);
	return 1;
}

/* Only what the user may write on the host: the rest is refused inside as it is outside. */
static int adopt(struct scan *s, int host, const char *rel, const struct stat *st)
{
	bool fits = S_ISREG(st->st_mode) && st->st_size <= FILE_MAX &&
		    s->copied + (uint64_t)st->st_size <= TOTAL_MAX;
	int r;

	if (!is_foreign(s, st) || (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode)) ||
	    faccessat(host, rel, W_OK, AT_EACCESS) < 0)
		return 0;
	if (s->looking)
		return note_left(s, host, rel);
	if (!S_ISDIR(st->st_mode) && !fits)
		return 0;
	if (S_ISDIR(st->st_mode)) {
		r = adopt_dirs(s, host, rel);
	} else {
		r = adopt_file(s, host, rel, st);
		s->copied += (uint64_t)st->st_size;
	}
	if (r == 0)
		r = keep_times(s, host, rel);
	if (r == 0)
		s->adopted++;
	return r;
}

/* Copies a directory that the user cannot write, for the sake of what is below it. */
static int adopt_around(struct scan *s, int host, const char *rel)
{
	AUTO_BUF struct buf attrs = BUF_INIT;
	int r;

	if (s->looking)
		return note_left(s, host, rel);
	/* A copy without the attributes would look like a change: rather none. */
	if (!is_in_mount(host, rel) || meta_pack(host, rel, &attrs) < 0)
		return 0;
	r = adopt_dirs(s, host, rel);
	if (r == 0)
		r = keep_times(s, host, rel);
	if (r == 0)
		s->adopted++;
	return r;
}

/*
 * The kernel copies up all directories above an object first, and fails at one that has another
 * owner or group. This copies the nearest such directory above @rel and all above that one.
 */
static int adopt_above(struct scan *s, int host, const char *rel)
{
	AUTO_FREE char *path = xstrdup(rel);
	struct stat st;

	for (char *p = strrchr(path, '/'); p; p = strrchr(path, '/')) {
		*p = '\0';
		if (fstatat(host, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (is_foreign(s, &st))
			return adopt_around(s, host, path);
	}
	return 0;
}

/* Directories with many entries that are mostly left alone. */
static bool is_skipped(const char *name)
{
	return strcmp(name, "node_modules") == 0 || strcmp(name, "objects") == 0;
}

static int scan_dir(struct scan *s, int host, const char *rel)
{
	AUTO_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	struct stat st;
	bool around;
	int fd, r;

	fd = openat(host, *rel ? rel : ".",
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0; /* unreadable outside, unreadable inside */
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	/* Another owner or group; but something of the user's may be in this directory. */
	around = *rel && fstat(fd, &st) == 0 && is_foreign(s, &st);
	while (s->looked < s->most && (de = readdir(d))) {
		char *sub;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		s->looked++;
		if (fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		r = 0;
		if (around && !is_foreign(s, &st)) {
			r = adopt_around(s, host, rel);
			around = false;
		}
		if (r)
			return r;
		if (!S_ISDIR(st.st_mode) && !is_foreign(s, &st))
			continue;
		sub = xasprintf("%s%s%s", rel, *rel ? "/" : "", de->d_name);
		r = adopt(s, host, sub, &st);
		if (S_ISDIR(st.st_mode) && (s->looking || !is_skipped(de->d_name)))
			enqueue(s, sub);
		else
			free(sub);
		if (r)
			return r;
	}
	return 0;
}

/* Files of other groups are rare for who is in none: then only what is nearest is looked at. */
static unsigned entries_most(void)
{
	gid_t groups[2];
	int n = getgroups(2, groups);

	return n < 0 || n > 1 || (n == 1 && groups[0] != getegid()) ? ENTRIES_MAX
								    : ENTRIES_FEW;
}

static char *mark_of(const char *dir)
{
	return xasprintf("%s/adopted", dir);
}

/* Its mtime is what counts. */
static int note_adopted(const char *dir, struct err *e)
{
	AUTO_FREE char *mark = mark_of(dir);
	AUTO_CLOSE int fd = -1;
	struct timespec t[2];

	if (!FAULT_AT("foreign.note"))
		fd = open(mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	clock_gettime(CLOCK_REALTIME, &t[0]);
	t[1] = t[0];
	if (fd < 0 || FAULT_AT("foreign.note-time") || futimens(fd, t) < 0)
		return err_sys(e, errno, "cannot make %s", mark);
	return 0;
}

int64_t layer_adopted_ns(const char *dir)
{
	AUTO_FREE char *mark = mark_of(dir);
	struct stat st;

	return lstat(mark, &st) == 0
		       ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec
		       : 0;
}

static void scan_free(struct scan *s)
{
	for (size_t i = 0; i < s->tail; i++)
		free(s->queue[i]);
	free(s->queue);
	for (size_t i = 0; i < s->nmade; i++)
		free(s->made[i].rel);
	free(s->made);
}

/* @dir within the tree at @top. */
static const char *below(const char *top, const char *dir)
{
	const char *rel = dir + strlen(top);

	return *rel == '/' ? rel + 1 : rel;
}

static int scan(struct scan *s, int host, const char *rel)
{
	struct stat st;
	int r = adopt_above(s, host, rel);

	enqueue(s, xstrdup(rel));
	if (r == 0 && *rel && fstatat(host, rel, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = adopt(s, host, rel, &st);
	while (r == 0 && s->head < s->tail && s->looked < s->most)
		r = scan_dir(s, host, s->queue[s->head++]);
	return r;
}

int layer_adopt_foreign(const struct view_layer *l, const char *dir, const char *memory,
			struct err *e)
{
	AUTO_FREE char *uppath = xasprintf("%s/up", l->dir);
	AUTO_CLOSE int host = -1, up = -1;
	struct scan s = { .uid = geteuid(), .gid = getegid(), .most = entries_most() };
	bool lately = adopt_cache_fresh(memory, dir);
	int r;

	if (lately)
		s.most = ENTRIES_NEAR;
	host = open(l->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	up = s.up = open(uppath, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (host < 0 || up < 0)
		return err_sys(e, errno, "cannot open %s", host < 0 ? l->host : uppath);
	r = scan(&s, host, below(l->host, dir));
	if (r == 0)
		r = set_modes(&s);
	scan_free(&s);
	if (s.adopted)
		log_debug("adopted %u objects of other owners below %s", s.adopted, dir);
	if (r < 0)
		return err_sys(e, r, "cannot prepare files of other groups below %s",
			       dir);
	if (s.adopted)
		return note_adopted(l->dir, e);
	if (!lately)
		adopt_cache_note(memory, dir);
	return 0;
}

char *layer_left_foreign(const char *top, const char *upper, const char *dir)
{
	AUTO_CLOSE int host = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int up = open(upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct scan s = { .up = up,
			  .uid = geteuid(),
			  .gid = getegid(),
			  .most = ENTRIES_LOOKED,
			  .looking = true };
	char *path = NULL;

	if (host >= 0 && up >= 0 && scan(&s, host, below(top, dir)) > 0)
		path = xasprintf("%s/%s", strcmp(top, "/") == 0 ? "" : top, s.left);
	free(s.left);
	scan_free(&s);
	return path;
}
