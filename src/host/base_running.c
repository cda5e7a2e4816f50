/* SPDX-License-Identifier: Apache-2.0 */
#include "host/base_running.h"
#include "base/clock.h"
#include "host/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/known.h"
#include "layer/meta.h"
#include "plan/stage.h"
#include "sys/fs.h"
#include "txn/find.h"
#include "txn/parts.h"
#include "txn/txn.h"

enum {
	WATCHES = 8192,		      /* directories, in all */
	GONE_MAX = 4096,	      /* objects in those that were deleted, in all */
	NOTES_MAX = 20000,	      /* objects noted, in all */
	READ_MAX = 128 * 1024 * 1024, /* bytes of their content */
	WORK_MS = 5, /* at a stretch, then a pause: the processors are the command's */
	PAUSE_MS = 20,
	EVENTS = 64 * 1024
};

/* A copy comes as a link or by rename, a whiteout by rename. */
static const uint32_t mask = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_EXCL_UNLINK;

struct dir {
	uint32_t layer;
	bool gone; /* inside: what the host has in it is deleted */
	char *rel;
};

struct seen {
	struct change_layer *layers;
	struct base_notes notes;
	int fd, stop;
	struct dir *watched; /* by descriptor; rel NULL: gone */
	size_t nwatched;
	struct dir *due; /* directories to be looked through */
	size_t ndue;
	size_t gone, noted;
};

static bool is_over(const struct seen *s, int wait_ms)
{
	struct pollfd p = { .fd = s->stop, .events = POLLIN };

	return poll(&p, 1, wait_ms) > 0;
}

static void put_off(struct seen *s, uint32_t layer, const char *rel, bool gone)
{
	if ((s->ndue & (s->ndue - 1)) == 0)
		s->due = xrealloc(s->due, (s->ndue ? 2 * s->ndue : 8) * sizeof(*s->due));
	s->due[s->ndue++] = (struct dir){ layer, gone, xstrdup(rel) };
}

/* Once: a file may be saved a thousand times. */
static void note(struct seen *s, uint32_t layer, const char *rel,
		 const struct ident *host)
{
	struct ident before;
	struct err e;

	if (s->noted >= NOTES_MAX || s->notes.read >= READ_MAX ||
	    known_ident(s->notes.known, layer, rel, &before))
		return;
	if (base_note(&s->notes, layer, rel, host, &e) > 0) {
		s->noted++;
		known_tell(s->notes.known, layer, rel, host);
	}
}

static void look(struct seen *s, const struct dir *d, const char *name)
{
	AUTO_FREE char *rel = strcmp(d->rel, ".") == 0 ? xstrdup(name)
						       : xasprintf("%s/%s", d->rel, name);
	struct ident host, up;
	struct err e;

	if (apply_look(s->notes.a, d->layer, rel, &host, &up, &e) < 0 || !host.mode)
		return;
	note(s, d->layer, rel, &host);
	/* Everything in a directory that the host does not have is new. */
	if (S_ISDIR(host.mode) && (up.mode || d->gone))
		put_off(s, d->layer, rel, !S_ISDIR(up.mode));
}

static void remember(struct seen *s, int wd, struct dir *d)
{
	size_t n = (size_t)wd + 1;

	if (n > s->nwatched) {
		s->watched = xrealloc(s->watched, 2 * n * sizeof(*s->watched));
		memset(s->watched + s->nwatched, 0,
		       (2 * n - s->nwatched) * sizeof(*s->watched));
		s->nwatched = 2 * n;
	}
	free(s->watched[wd].rel);
	s->watched[wd] = *d;
	d->rel = NULL;
}

static int open_dir(const struct seen *s, const struct dir *d, bool host)
{
	const struct change_layer *l = &s->layers[d->layer];
	AUTO_CLOSE int root = open(host ? l->host : l->upper,
				   O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root < 0 ? -errno : fs_open_beneath(root, d->rel, O_RDONLY | O_DIRECTORY);
}

static void watch(struct seen *s, const struct dir *d, int fd)
{
	struct dir copy = { .layer = d->layer, .rel = xstrdup(d->rel) };
	char path[40];
	int wd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* By way of the link that /proc has for it. */
	wd = inotify_add_watch(s->fd, path, mask);
	if (wd >= 0 && wd < WATCHES)
		remember(s, wd, &copy);
	free(copy.rel);
}

/* Watched first, then read: what comes in between is seen twice rather than never. */
static void look_through(struct seen *s, struct dir *d)
{
	AUTO_CLOSE int fd = open_dir(s, d, d->gone);
	struct fs_names names = { 0 };

	/* An opaque directory replaces the host's: as good as deleted. */
	if (fd >= 0 && !d->gone && meta_is_opaque(fd, ".")) {
		d->gone = true;
		cleanup_close(&fd);
		fd = open_dir(s, d, true);
	}
	if (fd >= 0 && !d->gone)
		watch(s, d, fd);
	if (fd < 0 || fs_names_read(fd, &names) < 0)
		return;
	for (size_t i = 0; i < names.n && !is_over(s, 0); i++)
		if (!d->gone || s->gone++ < GONE_MAX)
			look(s, d, names.v[i]);
	fs_names_free(&names);
}

static void take(struct seen *s, const struct inotify_event *ev)
{
	struct dir *d;

	if (ev->wd < 0 || (size_t)ev->wd >= s->nwatched || !s->watched[ev->wd].rel)
		return;
	d = &s->watched[ev->wd];
	if (ev->mask & IN_IGNORED) {
		free(d->rel);
		d->rel = NULL;
	} else if (ev->len) {
		look(s, d, ev->name);
	}
}

/* Handles the events that are there, for a bounded time. False: there are no more. */
static bool work(struct seen *s, char *events)
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + WORK_MS;
	const struct inotify_event *ev;
	ssize_t n;

	apply_look_afresh(s->notes.a);
	known_place_again(s->notes.known);
	while (clock_ms(CLOCK_MONOTONIC) < until) {
		if (s->ndue) {
			struct dir d = s->due[--s->ndue];

			look_through(s, &d);
			free(d.rel);
			continue;
		}
		n = read(s->fd, events, EVENTS);
		if (n <= 0)
			return false;
		for (ssize_t at = 0; at < n && !is_over(s, 0);
		     at += (ssize_t)(sizeof(*ev) + ev->len)) {
			ev = (const struct inotify_event *)(const void *)(events + at);
			take(s, ev);
		}
	}
	return true;
}

static void keep_noting(struct seen *s)
{
	AUTO_FREE char *events = xmalloc(EVENTS);
	struct pollfd p[] = { { .fd = s->stop, .events = POLLIN },
			      { .fd = s->fd, .events = POLLIN } };
	struct err e;

	while (!is_over(s, PAUSE_MS)) {
		bool more = work(s, events);

		if (plan_flush(s->notes.w, &e) < 0)
			return;
		if (!more && poll(p, 2, -1) < 0 && errno != EINTR)
			return;
	}
}

void base_note_running(const struct txn_record *r, int stop, int done)
{
	AUTO_CLOSE int dir = open(r->dir,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct seen s = { .stop = stop };
	AUTO_FREE struct change_layer *layers = NULL;
	struct err e;
	size_t n;

	s.layers = layers = txn_layers(r, &n);
	s.notes.begin = r->begin_ns;
	s.notes.known = known_new(r);
	s.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s.fd < 0 || dir < 0 || apply_open(layers, n, &s.notes.a, &e) < 0)
		return;
	if (plan_create(dir, SEEN, &s.notes.w, &e) == 0) {
		for (size_t i = 0; i < n; i++)
			put_off(&s, (uint32_t)i, ".", false);
		keep_noting(&s);
		plan_finish_lazily(s.notes.w, &e);
	}
	close(done);
	/* The kernel takes milliseconds to forget watches: that is our time, nobody waits. */
	close(s.fd);
	for (size_t i = 0; i < s.nwatched; i++)
		free(s.watched[i].rel);
	for (size_t i = 0; i < s.ndue; i++)
		free(s.due[i].rel);
	free(s.watched);
	free(s.due);
	base_notes_free(&s.notes);
}
