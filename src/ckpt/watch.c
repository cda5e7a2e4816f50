/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ckpt/rescan.h"
#include "ckpt/walk.h"
#include "ckpt/watch.h"
#include "sys/kernel.h"

/*
 * The uppers are watched, not the mounted overlay: only an upper shows that an object of the
 * host was copied up. A write through the overlay shows in the upper from this kernel on.
 */
enum { MAJOR = 6, MINOR = 8 };

/* The limit of watches holds for all programs of the user: we take a part of it. */
enum { WATCHES_MAX = 65536, PART = 4 };

#define CONTENT (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE)
#define NAMES (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define MISSED (IN_Q_OVERFLOW | IN_UNMOUNT)

struct watched {
	uint32_t layer;
	char *rel;
};

struct ck_watch {
	int fd;
	bool missed;
	unsigned left;	   /* so many more directories */
	struct watched *v; /* by the kernel's number */
	size_t n;
	struct ck_paths noted;
};

static unsigned allowed(void)
{
	FILE *f = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
	unsigned n = 0;

	if (f && fscanf(f, "%u", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n / PART < WATCHES_MAX ? n / PART : WATCHES_MAX;
}

struct ck_watch *ck_watch_new(void)
{
	struct ck_watch *w;
	int fd;

	if (!kernel_is(MAJOR, MINOR))
		return NULL;
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->fd = fd;
	w->left = allowed();
	return w;
}

void ck_watch_free(struct ck_watch *w)
{
	if (!w)
		return;
	close(w->fd);
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i].rel);
	free(w->v);
	ck_paths_free(&w->noted);
	free(w);
}

void ck_watch_note(struct ck_watch *w, uint32_t layer, const char *rel)
{
	ck_paths_add(&w->noted, layer, rel, CK_NOTED);
}

void ck_watch_dir(struct ck_watch *w, int fd, uint32_t layer, const char *rel)
{
	char name[32];
	int wd;

	if (w->missed)
		return;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	wd = w->left ? inotify_add_watch(w->fd, name, CONTENT | NAMES | IN_ONLYDIR) : -1;
	if (wd < 0) {
		w->missed = true;
		return;
	}
	w->left--;
	if ((size_t)wd >= w->n) {
		size_t n = (size_t)wd < 1024 ? 1024 : 2 * (size_t)wd;

		w->v = xrealloc(w->v, n * sizeof(*w->v));
		memset(w->v + w->n, 0, (n - w->n) * sizeof(*w->v));
		w->n = n;
	}
	/* A directory that was moved has been watched before: its new path counts. */
	free(w->v[wd].rel);
	w->v[wd] = (struct watched){ layer, xstrdup(rel) };
}

static void add_event(const struct ck_watch *w, const struct inotify_event *ev,
		      struct ck_paths *to)
{
	const struct watched *d = &w->v[ev->wd];
	AUTO_FREE char *path = NULL;

	/* Changes of the directory itself; changes of its names come as events with a name. */
	if (!ev->len || ev->mask & NAMES)
		ck_paths_add(to, d->layer, d->rel, CK_ITSELF);
	if (!ev->len)
		return;
	path = *d->rel ? xasprintf("%s/%s", d->rel, ev->name) : xstrdup(ev->name);
	ck_paths_add(to, d->layer, path, ev->mask & NAMES ? CK_BENEATH : CK_ITSELF);
}

bool ck_watch_read(struct ck_watch *w, struct ck_paths *changed)
{
	_Alignas(struct inotify_event) char block[65536];
	const struct inotify_event *ev;
	ssize_t n = 0;

	for (size_t i = 0; i < w->noted.n; i++)
		ck_paths_add(changed, w->noted.v[i].layer, w->noted.v[i].rel, CK_NOTED);
	ck_paths_free(&w->noted);
	while (!w->missed && (n = read(w->fd, block, sizeof(block))) > 0)
		for (const char *p = block; p < block + n; p += sizeof(*ev) + ev->len) {
			ev = (const void *)p;
			w->missed |= (ev->mask & MISSED) != 0;
			/*
			 * IN_IGNORED: the directory is gone, which the directory above has
			 * told.
			 */
			if (!(ev->mask & (MISSED | IN_IGNORED)) && ev->wd >= 0 &&
			    (size_t)ev->wd < w->n && w->v[ev->wd].rel)
				add_event(w, ev, changed);
		}
	w->missed |= !w->missed && n < 0 && errno != EAGAIN;
	return !w->missed;
}
