/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/dircache.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sys/fs.h"

enum {
	MOMENT_MS = 20, /* the open directories are trusted for this time, */
	SHARE = 16,	/* and for this many times as long as opening them took */
	NEAREST = 32,	/* this many of the deepest directories stay open, */
	EVERY = 64,	/* and one in this many above them */
};

static void let_go(struct level *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static void cut(struct dircache *t, size_t n)
{
	while (t->n > n)
		let_go(&t->v[--t->n]);
	buf_truncate(&t->path, n ? t->v[n - 1].len : 0);
}

void dircache_drop(struct dircache *t)
{
	cut(t, 0);
}

void dircache_free(struct dircache *t)
{
	cut(t, 0);
	free(t->v);
	buf_free(&t->path);
	*t = (struct dircache){ 0 };
}

/* How many of the open levels are above @dir, too. */
static size_t common(const struct dircache *t, const char *dir, size_t len)
{
	const char *path = buf_str(&t->path);
	size_t same = 0, n = t->n;

	while (same < len && same < t->path.len && dir[same] == path[same])
		same++;
	while (n > 0 && (t->v[n - 1].len > same ||
			 (t->v[n - 1].len < len && dir[t->v[n - 1].len] != '/')))
		n--;
	return n;
}

static void add(struct dircache *t, const char *name, size_t len, int fd)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 16;
		t->v = xrealloc(t->v, t->cap * sizeof(*t->v));
	}
	if (t->n)
		buf_addc(&t->path, '/');
	buf_add(&t->path, name, len);
	t->v[t->n++] = (struct level){ t->path.len, fd };
	if (t->n > NEAREST && (t->n - NEAREST) % EVERY)
		let_go(&t->v[t->n - NEAREST - 1]);
}

/* Opens a level again whose descriptor was closed, from the nearest open level above. */
static int reopen(struct dircache *t, int root, size_t n)
{
	char *path = t->path.data;
	size_t from = n, end = t->v[n].len;
	char was = path[end];
	int fd;

	while (from > 0 && t->v[from - 1].fd < 0)
		from--;
	path[end] = '\0';
	fd = fs_open_beneath(from ? t->v[from - 1].fd : root,
			     path + (from ? t->v[from - 1].len + 1 : 0),
			     O_PATH | O_DIRECTORY);
	path[end] = was;
	t->v[n].fd = fd < 0 ? -1 : fd;
	return fd;
}

static size_t levels_in(const char *s, size_t len)
{
	size_t n = len > 0;

	for (size_t i = 0; i < len; i++)
		n += s[i] == '/';
	return n;
}

/*
 * Opens the rest of @dir, @len bytes long in all. Levels that are not kept open are passed in
 * one call.
 */
static int follow(struct dircache *t, int root, const char *dir, size_t len)
{
	size_t at = t->n ? t->v[t->n - 1].len + 1 : 0, from = at;
	size_t all = levels_in(dir, len);
	int fd = t->n ? t->v[t->n - 1].fd : root;

	if (t->n && fd < 0)
		fd = reopen(t, root, t->n - 1);
	while (fd >= 0 && at < len) {
		size_t n = strcspn(dir + at, "/");
		bool keep = t->n + NEAREST >= all || (t->n + 1) % EVERY == 0;
		int next = -1;

		if (keep) {
			AUTO_FREE char *way = xstrndup(dir + from, at + n - from);

			next = fs_open_beneath(fd, way, O_PATH | O_DIRECTORY);
			fd = next;
			from = at + n + 1;
		}
		if (fd >= 0)
			add(t, dir + at, n, next);
		at += n + 1;
	}
	return fd;
}

int dircache_to(struct dircache *t, int root, const char *dir, const char **base)
{
	const char *slash = strrchr(dir, '/');
	size_t len = slash ? (size_t)(slash - dir) : 0;
	int64_t now = clock_ms(CLOCK_MONOTONIC_COARSE);
	int fd;

	*base = slash ? slash + 1 : dir;
	if (t->n && now - t->begun_ms > t->good_ms)
		cut(t, 0);
	if (!t->n)
		t->begun_ms = now;
	cut(t, common(t, dir, len));
	fd = follow(t, root, dir, len);
	/*
	 * On a busy machine opening takes longer than the time that the result is trusted for.
	 */
	if (t->begun_ms == now)
		t->good_ms = MOMENT_MS + SHARE * (clock_ms(CLOCK_MONOTONIC_COARSE) - now);
	if (fd < 0)
		cut(t, 0);
	return fd;
}
