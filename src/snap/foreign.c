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
#include "snap/adopt_cache.h"
#include "snap/foreign.h"
#include "snap/store.h"

enum {
	ENTRIES_MAX = 2000,	     /* for a member of several groups */
	ENTRIES_FEW = 200,	     /* for anybody else */
	ENTRIES_NEAR = 64,	     /* if there was nothing a moment ago */
	FILE_MAX = 64 * 1024 * 1024, /* larger files are not copied ahead */
	TOTAL_MAX = 256 * 1024 * 1024,
};

struct scan {
	const struct view_layer *layer;
	int up; /* the upper */
	uid_t uid;
	gid_t gid;
	unsigned looked, most;
	uint64_t copied;
	unsigned adopted;
	/* Directories still to be read: breadth first, what is near is edited first. */
	char **queue;
	size_t head, tail, cap;
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

/* Makes the directory @rel and all above it in the upper, as the host has them. */
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
			if (fstatat(host, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			    FAULT_AT("foreign.dir-chmod") ||
			    fchmodat(s->up, path, st.st_mode & 07777, 0) < 0)
				return -errno;
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

/* What was put into the directories above @rel has moved their times. */
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

/* Only what the user may write on the host: the rest is refused inside as it is outside. */
static int adopt(struct scan *s, int host, const char *rel, const struct stat *st)
{
	int r = 0;

	if (!is_foreign(s, st) || faccessat(host, rel, W_OK, AT_EACCESS) < 0)
		return 0;
	if (S_ISDIR(st->st_mode)) {
		r = adopt_dirs(s, host, rel);
	} else if (S_ISREG(st->st_mode) && st->st_size <= FILE_MAX &&
		   s->copied + (uint64_t)st->st_size <= TOTAL_MAX) {
		r = adopt_file(s, host, rel, st);
		s->copied += (uint64_t)st->st_size;
	}
	if (r == 0 && (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)))
		r = keep_times(s, host, rel);
	if (r == 0)
		s->adopted++;
	return r;
}

static int scan_dir(struct scan *s, int host, const char *rel)
{
	AUTO_CLOSEDIR DIR *d = NULL;
	struct dirent *de;
	struct stat st;
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
	while (s->looked < s->most && (de = readdir(d))) {
		char *sub;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		s->looked++;
		if (fstatat(fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!S_ISDIR(st.st_mode) && !is_foreign(s, &st))
			continue;
		sub = xasprintf("%s%s%s", rel, *rel ? "/" : "", de->d_name);
		r = adopt(s, host, sub, &st);
		if (S_ISDIR(st.st_mode) && strcmp(de->d_name, "node_modules") != 0 &&
		    strcmp(de->d_name, "objects") != 0)
			enqueue(s, sub);
		else
			free(sub);
		if (r < 0)
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

int layer_adopt_foreign(const struct view_layer *l, const char *dir, const char *memory,
			struct err *e)
{
	AUTO_FREE char *uppath = xasprintf("%s/up", l->dir);
	AUTO_CLOSE int host = -1, up = -1;
	struct scan s = {
		.layer = l, .uid = geteuid(), .gid = getegid(), .most = entries_most()
	};
	bool lately = adopt_cache_fresh(memory, dir);
	size_t base = strlen(l->host);
	struct stat st;
	int r = 0;

	if (lately)
		s.most = ENTRIES_NEAR;
	host = open(l->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	up = s.up = open(uppath, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (host < 0 || up < 0)
		return err_sys(e, errno, "cannot open %s", host < 0 ? l->host : uppath);
	enqueue(&s, xstrdup(dir[base] == '/' ? dir + base + 1 : dir + base));
	if (*s.queue[0] && fstatat(host, s.queue[0], &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = adopt(&s, host, s.queue[0], &st);
	while (r == 0 && s.head < s.tail && s.looked < s.most)
		r = scan_dir(&s, host, s.queue[s.head++]);
	for (size_t i = 0; i < s.tail; i++)
		free(s.queue[i]);
	free(s.queue);
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
