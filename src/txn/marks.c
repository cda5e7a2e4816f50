/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "ctl/idle.h"
#include "layer/meta.h"
#include "layer/unshare.h"
#include "sys/rmtree.h"
#include "txn/find.h"
#include "txn/marks.h"
#include "txn/parts.h"

/*
 * Marks: small files in a transaction directory that say what is true of its layers. A mark is
 * removed before it stops being true.
 */

static char *untouched_name(const struct txn_record *r)
{
	return xasprintf("%s/untouched", r->dir);
}

/*
 * One letter for each layer. A torn write after a power cut says less, never more. A process
 * that reads meanwhile sees the previous mark, whole.
 */
void untouched_keep(const struct txn_record *r, const bool *touched, size_t n)
{
	AUTO_FREE char *name = untouched_name(r), *text = xmalloc(n);
	AUTO_FREE char *fresh = xasprintf("%s.new", name);
	AUTO_CLOSE int fd = -1;

	/* A single layer lies in the store of the state directory, which is mounted. */
	if (n < 2)
		return;
	for (size_t i = 0; i < n; i++)
		text[i] = touched[i] ? 't' : 'u';
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && (write(fd, text, n) != (ssize_t)n || rename(fresh, name) < 0))
		unlink(fresh);
}

static bool is_away(const struct layer_record *l)
{
	AUTO_FREE char *up = xasprintf("%s/up", l->dir);

	return layer_away(up);
}

/* Writes the mark for other processes. @all: also for layers that are still mounted. */
static void keep_idle(const struct txn_record *r, bool all)
{
	AUTO_FREE bool *touched = xcalloc(r->nlayers + 1, sizeof(*touched));
	bool any = false;
	size_t n = 0;

	for (size_t i = 0; i < r->nlayers; i++) {
		const struct layer_record *l = &r->layers[i];

		if (l->kind != LAYER_OVERLAY)
			continue;
		touched[n] = !l->idle || !(all || is_away(l));
		any |= !touched[n++];
	}
	if (any)
		untouched_keep(r, touched, n);
}

void txn_note_idle(struct txn_record *r, uint64_t untouched)
{
	for (size_t i = 0, n = 0; i < r->nlayers; i++) {
		struct layer_record *l = &r->layers[i];

		if (l->kind != LAYER_OVERLAY)
			continue;
		/* A layer that was unmounted before is not part of a later explore. */
		l->idle = (i < IDLE_LAYERS_MAX && untouched >> i & 1) ||
			  (is_away(l) && untouched_was(r, n));
		n++;
	}
	/* While all layers are mounted the mark is not worth a file. */
	keep_idle(r, false);
}

void txn_keep_idle(const struct txn_record *r)
{
	keep_idle(r, true);
}

bool txn_use_again(struct txn_record *r)
{
	bool gone = false;

	for (size_t i = 0; i < r->nlayers; i++) {
		struct layer_record *l = &r->layers[i];

		if (l->idle && !is_away(l))
			l->idle = false;
		gone |= l->idle;
	}
	if (gone)
		keep_idle(r, false);
	return gone;
}

/* Layers that are unmounted cannot be touched: their letters stay. */
static bool keep_away_alone(const struct txn_record *r, int fd)
{
	bool any = false;

	for (size_t i = 0, k = 0; i < r->nlayers; i++) {
		AUTO_FREE char *up = xasprintf("%s/up", r->layers[i].dir);
		char c;

		if (r->layers[i].kind != LAYER_OVERLAY)
			continue;
		if (pread(fd, &c, 1, (off_t)k) == 1 && c == 'u' && layer_away(up))
			any = true;
		else if (pwrite(fd, "t", 1, (off_t)k) != 1)
			return false;
		k++;
	}
	return any;
}

int untouched_drop(const struct txn_record *r)
{
	AUTO_FREE char *name = untouched_name(r);
	AUTO_CLOSE int fd = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC), dir = -1;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	/* The old mark must not come back by a power cut after the layers were changed. */
	if (keep_away_alone(r, fd))
		return fsync(fd) < 0 ? -errno : 0;
	if (unlink(name) < 0)
		return -errno;
	dir = open(r->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 || fsync(dir) < 0 ? -errno : 0;
}

bool untouched_was(const struct txn_record *r, size_t layer)
{
	AUTO_FREE char *name = untouched_name(r);
	AUTO_CLOSE int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char c;

	return fd >= 0 && pread(fd, &c, 1, (off_t)layer) == 1 && c == 'u';
}

#define TICKET "durable.new"
#define UNSETTLED "unsettled"

static char *mark_of(const struct txn_record *r)
{
	return xasprintf("%s/durable", r->dir);
}

/*
 * After the command the work directory is of no use (each mount gets a new one), and its mode
 * 000 would be in the way of a user who deletes the state by hand.
 */
static void tidy_layer(const struct layer_record *l)
{
	AUTO_CLOSE int dir = open(l->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int up = -1;

	if (dir < 0 || l->kind != LAYER_OVERLAY)
		return;
	rmtree_at(dir, "wk", NULL);
	up = openat(dir, "up", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (up >= 0)
		meta_unmark(up);
}

/*
 * The name of the ticket goes as soon as the layers are to be changed, and a file without a
 * name cannot be linked to the mark. So no lock is needed while the filesystem is written.
 */
int txn_to_disk_begin(const struct txn_record *r)
{
	AUTO_FREE char *ticket = xasprintf("%s/" TICKET, r->dir);
	AUTO_FREE char *unsettled = xasprintf("%s/" UNSETTLED, r->dir);

	/* The old mark goes first: it is not about what is written now. */
	txn_not_on_disk(r);
	unlink(unsettled);
	for (size_t i = 0; i < r->nlayers; i++)
		tidy_layer(&r->layers[i]);
	return open(ticket, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void txn_to_disk(const struct txn_record *r, int ticket)
{
	AUTO_FREE char *mark = mark_of(r);
	char self[40];

	for (size_t i = 0; i < r->nlayers; i++) {
		AUTO_CLOSE int dir = open(r->layers[i].dir,
					  O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* The kernel writes a filesystem before it is unmounted. */
		if (r->layers[i].kind != LAYER_OVERLAY || (dir < 0 && errno == ENOENT))
			continue;
		if (dir < 0 || syncfs(dir) < 0)
			return;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", ticket);
	if (linkat(AT_FDCWD, self, AT_FDCWD, mark, AT_SYMLINK_FOLLOW) < 0)
		log_debug("not noted to be on the disk: %s", strerror(errno));
}

void txn_not_on_disk(const struct txn_record *r)
{
	AUTO_FREE char *ticket = xasprintf("%s/" TICKET, r->dir);
	AUTO_FREE char *mark = mark_of(r);

	/* In this order: then no new mark can be made. */
	unlink(ticket);
	unlink(mark);
}

bool txn_on_disk(const struct txn_record *r)
{
	AUTO_FREE char *mark = mark_of(r);

	return r->dir && access(mark, F_OK) == 0;
}

/*
 * Both marks count: a commit may begin while the layers are written, and txn_to_disk() may end
 * after it.
 */
bool disk_settled(const struct txn_record *r)
{
	AUTO_FREE char *unsettled = xasprintf("%s/" UNSETTLED, r->dir);

	return txn_on_disk(r) && access(unsettled, F_OK) < 0;
}

int disk_unsettle(const struct txn_record *r)
{
	AUTO_FREE char *unsettled = xasprintf("%s/" UNSETTLED, r->dir);
	AUTO_CLOSE int fd = -1;

	if (!FAULT_AT("disk.unsettle"))
		fd = open(unsettled, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : 0;
}

int layers_own(const struct txn_record *r, struct err *e)
{
	AUTO_FREE struct change_layer *layers = NULL;
	size_t n;

	layers = txn_layers(r, &n);
	for (size_t i = 0; i < n; i++) {
		int x = layers[i].away ? 0 : unshare_layer(&layers[i]);

		if (x < 0)
			return err_sys(e, x, "cannot part %s from what the host has",
				       layers[i].upper);
	}
	return 0;
}
