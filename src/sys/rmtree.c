/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/rmtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "sys/btrfs.h"
#include "sys/fs.h"

/* Levels whose descriptor and unread entries are kept; those above are reopened by "..". */
#define WINDOW 32
#define ENTRIES_SIZE 16384

/* A directory that is filled while we empty it is not read for ever. */
#define MAX_PASSES 100

struct level {
	int fd; /* -1: closed to keep within the window */
	dev_t dev;
	ino_t ino;
	char *name;	 /* in the level above */
	off_t next;	 /* where reading goes on after a reopening */
	uint64_t blocks; /* its own */
	int passes;
	bool progress; /* something was deleted in this pass */
	bool failed;   /* something in here stays: so must this */
};

struct entries {
	char *data;
	size_t pos, len;
};

struct walk {
	int top; /* the caller's descriptor */
	struct level *levels;
	size_t depth, cap;
	struct entries window[WINDOW]; /* of level i at i % WINDOW */
	uint64_t *bytes;
	int error; /* the first one */
};

static void count(struct walk *w, uint64_t blocks)
{
	if (w->bytes)
		*w->bytes += blocks * 512;
}

/* In the innermost open directory, or of the whole. */
static void fail_with(struct walk *w, int error)
{
	if (!w->error)
		w->error = error;
	if (w->depth > 0)
		w->levels[w->depth - 1].failed = true;
}

static void progress(struct walk *w)
{
	if (w->depth > 0)
		w->levels[w->depth - 1].progress = true;
}

/* By descriptor: a name could be a link by the time of the chmod. */
static int unlock_dir(int dirfd, const char *name)
{
	AUTO_CLOSE int fd = fs_open_dir_here(dirfd, name, O_PATH);
	char self[32];

	if (fd < 0)
		return fd;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (chmod(self, 0700))
		return -errno;
	return fs_open_dir_here(fd, ".", O_RDONLY);
}

static int open_dir(int dirfd, const char *name, struct stat *st)
{
	AUTO_CLOSE int fd = fs_open_dir_here(dirfd, name, O_RDONLY);

	if (fd == -EACCES)
		fd = unlock_dir(dirfd, name);
	if (fd < 0)
		return fd;
	if (fstat(fd, st))
		return -errno;
	/* if this is refused, so will be the unlinks, and they report it */
	if ((st->st_mode & 0700) != 0700)
		(void)!fchmod(fd, 0700);
	return TAKE_FD(fd);
}

static void enter(struct walk *w, int dirfd, const char *name)
{
	struct level *l;
	struct entries *in;
	struct stat st;
	int fd = open_dir(dirfd, name, &st);

	/* A snapshot goes as a whole where that is allowed, and file by file elsewhere. */
	if (fd >= 0 && st.st_ino == BTRFS_TOP && btrfs_is_subvolume(fd) &&
	    btrfs_destroy(dirfd, name) == 0) {
		close(fd);
		progress(w);
		return;
	}
	if (fd == -ENOENT && w->depth > 0)
		return;
	if (fd < 0) {
		fail_with(w, fd);
		return;
	}
	if (w->depth == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 2 * WINDOW;
		w->levels = xrealloc(w->levels, w->cap * sizeof(*w->levels));
	}
	/* @name lies in the entries of a level above: copied before they may go */
	w->levels[w->depth] = (struct level){ .fd = fd,
					      .dev = st.st_dev,
					      .ino = st.st_ino,
					      .name = xstrdup(name),
					      .blocks = (uint64_t)st.st_blocks };
	if (w->depth >= WINDOW) {
		l = &w->levels[w->depth - WINDOW];
		if (l->fd >= 0)
			close(l->fd);
		l->fd = -1;
	}
	in = &w->window[w->depth % WINDOW];
	if (!in->data)
		in->data = xmalloc(ENTRIES_SIZE);
	in->pos = in->len = 0;
	w->depth++;
}

/*
 * The descriptor of the level above the innermost. What ".." leads to must be where we
 * came from: somebody may have moved the directory out of the tree meanwhile.
 */
static int parent_fd(struct walk *w)
{
	struct level *l, *up;
	struct stat st;
	struct entries *in;

	if (w->depth == 1)
		return w->top;
	l = &w->levels[w->depth - 1];
	up = l - 1;
	if (up->fd >= 0)
		return up->fd;
	up->fd = openat(l->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (up->fd < 0)
		return -errno;
	if (fstat(up->fd, &st))
		return -errno;
	if (st.st_dev != up->dev || st.st_ino != up->ino)
		return -ESTALE;
	if (lseek(up->fd, up->next, SEEK_SET) < 0)
		return -errno;
	in = &w->window[(w->depth - 2) % WINDOW];
	in->pos = in->len = 0;
	return up->fd;
}

static void pop(struct walk *w)
{
	struct level *l = &w->levels[--w->depth];

	if (l->fd >= 0)
		close(l->fd);
	free(l->name);
}

/* The innermost directory is read to its end. */
static void leave(struct walk *w)
{
	struct level *l = &w->levels[w->depth - 1];
	uint64_t blocks = l->blocks;
	int fd = parent_fd(w);
	int r;

	if (fd < 0) {
		fail_with(w, fd);
		while (w->depth > 0)
			pop(w);
		return;
	}
	r = FAULT_AT("rmtree.rmdir") || unlinkat(fd, l->name, AT_REMOVEDIR) ? -errno : 0;
	/* reading while deleting may skip entries on some filesystems */
	if ((r == -ENOTEMPTY || r == -EEXIST) && l->progress && !l->failed &&
	    l->passes++ < MAX_PASSES && lseek(l->fd, 0, SEEK_SET) == 0) {
		l->progress = false;
		return;
	}
	pop(w);
	if (r < 0 && r != -ENOENT) {
		fail_with(w, r);
		return;
	}
	progress(w);
	if (r == 0)
		count(w, blocks);
}

static void remove_file(struct walk *w, int dirfd, const char *name)
{
	struct stat st = { 0 };

	if (w->bytes && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		st.st_nlink = 0;
	if ((FAULT_AT("rmtree.unlink") || unlinkat(dirfd, name, 0)) && errno != ENOENT) {
		fail_with(w, -errno);
		return;
	}
	progress(w);
	if (st.st_nlink == 1)
		count(w, (uint64_t)st.st_blocks);
}

static bool is_dir(int dirfd, const struct dirent64 *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(dirfd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* One entry of the innermost directory. */
static void step(struct walk *w)
{
	struct level *l = &w->levels[w->depth - 1];
	struct entries *in = &w->window[(w->depth - 1) % WINDOW];
	const struct dirent64 *d;
	ssize_t n;

	if (in->pos == in->len) {
		n = FAULT_AT("rmtree.read") ? -1
					    : getdents64(l->fd, in->data, ENTRIES_SIZE);
		if (n < 0)
			fail_with(w, -errno);
		if (n <= 0) {
			leave(w);
			return;
		}
		in->pos = 0;
		in->len = (size_t)n;
	}
	d = (const struct dirent64 *)(const void *)(in->data + in->pos);
	in->pos += d->d_reclen;
	l->next = d->d_off;
	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return;
	if (is_dir(l->fd, d))
		enter(w, l->fd, d->d_name);
	else
		remove_file(w, l->fd, d->d_name);
}

int rmtree_at(int dirfd, const char *name, uint64_t *bytes)
{
	struct walk w = { .top = dirfd, .bytes = bytes };
	struct stat st;
	size_t i;

	if (bytes)
		*bytes = 0;
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (S_ISDIR(st.st_mode))
		enter(&w, dirfd, name);
	else
		remove_file(&w, dirfd, name);
	while (w.depth > 0)
		step(&w);
	for (i = 0; i < WINDOW; i++)
		free(w.window[i].data);
	free(w.levels);
	return w.error;
}
