/* SPDX-License-Identifier: Apache-2.0 */
#include "inplace/inplace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/path.h"
#include "ckpt/pair.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "inplace/parts.h"
#include "sys/btrfs.h"
#include "sys/mountinfo.h"
#include "sys/rmtree.h"
#include "timeline/pair.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/parts.h"
#include "txn/state.h"

static int not_yours(const char *dir, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED,
		"%s cannot be snapshotted: the subvolume belongs to somebody else", dir);
	return err_hint(e, "chown its top directory, or leave --backend out");
}

/* Said before anything is made: nothing is to be left of what cannot be. */
int inplace_check(const char *dir, struct err *e)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "%s", dir);
	if (!btrfs_is_subvolume(fd)) {
		err_set(e, ERR_UNSUPPORTED,
			"--backend btrfs: %s is not a btrfs subvolume", dir);
		return err_hint(
			e,
			"make it one (btrfs subvolume create), or leave --backend out");
	}
	if (geteuid() != 0 && st.st_uid != geteuid())
		return not_yours(dir, e);
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	if (errno != EACCES && errno != EROFS)
		return err_sys(e, errno, "%s", dir);
	err_set(e, ERR_UNSUPPORTED, "--backend btrfs: %s cannot be written to: %s", dir,
		strerror(errno));
	return err_hint(e, errno == EROFS ? "mount it read-write, or leave --backend out"
					  : "chmod u+wx it, or leave --backend out");
}

int inplace_open(const struct txn_record *r, struct err *e)
{
	const struct layer_record *best = NULL;
	const char *dir = txn_in_place(r);
	int fd;

	for (size_t i = 0; i < r->nlayers; i++)
		if (r->layers[i].kind == LAYER_OVERLAY &&
		    path_within(dir, r->layers[i].host) &&
		    (!best || strlen(r->layers[i].host) > strlen(best->host)))
			best = &r->layers[i];
	if (!best)
		return err_set(e, ERR_UNSUPPORTED, "no store for a snapshot of %s", dir);
	fd = open(best->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, errno, "cannot open %s", best->dir) : fd;
}

/* Until the clock of files has moved on: no later change bears a time of the snapshot's. */
static void await_tick(void)
{
	const struct timespec moment = { .tv_nsec = 500000 };
	struct timespec a, b;

	clock_gettime(CLOCK_REALTIME_COARSE, &a);
	do {
		nanosleep(&moment, NULL);
		clock_gettime(CLOCK_REALTIME_COARSE, &b);
	} while (a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec);
}

int inplace_snapshot(const struct txn_record *r, const char *name, struct err *e)
{
	const char *dir = txn_in_place(r);
	AUTO_CLOSE int from = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_CLOSE int place = inplace_open(r, e);
	int x;

	if (place < 0)
		return -1;
	if (from < 0)
		return err_sys(e, errno, "%s", dir);
	x = FAULT_POINT("inplace.snapshot");
	if (x == 0)
		x = btrfs_snapshot(from, place, name);
	if (x == -EPERM)
		return not_yours(dir, e);
	if (x == -EXDEV) {
		err_set(e, ERR_UNSUPPORTED,
			"%s cannot be snapshotted: the store lies on another filesystem",
			dir);
		return err_hint(e, "put it there: STET_STATE_DIR=DIR");
	}
	return x < 0 ? err_sys(e, x, "cannot make a snapshot of %s", dir) : 0;
}

int inplace_begin(const struct txn *t, struct err *e)
{
	if (inplace_check(txn_in_place(&t->rec), e) < 0 ||
	    inplace_snapshot(&t->rec, BEFORE, e) < 0)
		return -1;
	await_tick();
	return 0;
}

static bool has_snapshot(int place, const char *name)
{
	struct stat st;

	return fstatat(place, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void inplace_end(const struct txn *t)
{
	AUTO_CLOSE int place = -1;
	struct err ignored;

	if (!txn_in_place(&t->rec))
		return;
	place = inplace_open(&t->rec, &ignored);
	if (place < 0 || has_snapshot(place, END))
		return;
	/* What anybody does from here on bears another time than what the command did last. */
	await_tick();
	inplace_snapshot(&t->rec, END, &ignored);
}

/* --- what differs --- */

void trees_close(struct trees *t)
{
	ck_state_free(&t->before);
	ck_state_free(&t->now);
	ck_state_free(&t->edges);
	cleanup_close(&t->layer.past);
	cleanup_close(&t->layer.live);
}

static bool below_edge(const struct ck_state *edges, const char *rel)
{
	for (size_t i = 0; i < edges->n; i++)
		if (path_within(rel, edges->v[i]->rel))
			return true;
	return false;
}

/* What is mounted below, or is a subvolume of its own, is no part of a snapshot. */
static void leave_out(struct ck_state *s, const struct ck_state *edges)
{
	size_t k = 0;

	for (size_t i = 0; i < s->n; i++)
		if (below_edge(edges, s->v[i]->rel))
			ck_unref(s->v[i]);
		else
			s->v[k++] = s->v[i];
	s->n = k;
}

static void find_edges(const struct ck_state *s, struct ck_state *edges)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i]->flags & CK_EDGE)
			ck_state_add(edges, ck_ref(s->v[i]));
}

/*
 * Is it a store of stet's? Where the subvolume is all that there is of its mount, stores lie at its
 * top. One of another user's is not ours to look at; as root we could be shown anything under such
 * a name.
 */
static bool is_store(const char *rel, const struct ident *id)
{
	char *end;
	unsigned long uid;

	if (strncmp(rel, STORE_NAME, strlen(STORE_NAME)) != 0 || !S_ISDIR(id->mode))
		return false;
	uid = strtoul(rel + strlen(STORE_NAME), &end, 10);
	return !*end && end != rel + strlen(STORE_NAME) && id->uid == uid &&
	       (uid == geteuid() || geteuid() != 0);
}

int trees_scan(const struct trees *t, int fd, struct ck_state *out, struct err *e)
{
	struct ck_layer l = t->layer;
	struct ck_layers one = { &l, 1 };
	struct ck_scan s = { .layers = &one, .whole = true, .edge = is_store };

	l.up = fd;
	if (ck_scan(&s, out, e) < 0)
		return -1;
	leave_out(out, &t->edges);
	return 0;
}

int trees_open(const struct txn_record *r, int now, struct trees *t, struct err *e)
{
	const char *dir = txn_in_place(r);
	AUTO_CLOSE int place = inplace_open(r, e), other = now;

	*t = (struct trees){ .layer = { .up = -1,
					.host = -1,
					.objects = -1,
					.past = -1,
					.live = -1,
					.path = dir,
					.lax = geteuid() != 0 } };
	t->layers = (struct ck_layers){ &t->layer, 1 };
	if (place < 0)
		return -1;
	t->layer.past = openat(place, BEFORE,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->layer.past < 0)
		return err_sys(e, errno, "the snapshot of %s is gone", dir);
	t->layer.live = other >= 0 ? TAKE_FD(other)
				   : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->layer.live < 0)
		return err_sys(e, errno, "%s", dir);
	t->layer.host = t->layer.up = t->layer.live;
	if (trees_scan(t, t->layer.past, &t->before, e) < 0 ||
	    trees_scan(t, t->layer.live, &t->now, e) < 0)
		return -1;
	find_edges(&t->before, &t->edges);
	find_edges(&t->now, &t->edges);
	leave_out(&t->before, &t->edges);
	leave_out(&t->now, &t->edges);
	return 0;
}

int trees_past(const struct txn_record *r, const char *name)
{
	struct err ignored;
	AUTO_CLOSE int place = inplace_open(r, &ignored);

	return place < 0 ? -1
			 : openat(place, name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int make_pair(const struct txn_record *r, struct txn_sides *s, struct err *e)
{
	AUTO_CLOSE int place = inplace_open(r, e), before = -1, after = -1, old = -1;
	struct timeline_pair *p = &s->pair;
	struct trees t;
	int x;

	if (place < 0)
		return -1;
	/* Once it has ended, the tree is not its alone any more. */
	if (r->state != TXN_ACTIVE)
		old = trees_past(r, END);
	if (old < 0 && r->state == TXN_ROLLED_BACK)
		old = trees_past(r, AFTER);
	*p = (struct timeline_pair){ .dirs = xcalloc(2, sizeof(char *)),
				     .names = xcalloc(3, sizeof(char *)) };
	if (timeline_pair_dir(place, p, &before, &after, e) < 0)
		return -1;
	x = trees_open(r, TAKE_FD(old), &t, e);
	if (x == 0)
		x = ck_pair(&t.layers, &t.before, &t.now, 0, before, after, e);
	trees_close(&t);
	return x;
}

static bool is_open(const struct txn_record *r)
{
	return r->state == TXN_ACTIVE || r->state == TXN_FROZEN;
}

int txn_sides_open(const struct txn_record *r, struct txn_sides *s, struct err *e)
{
	*s = (struct txn_sides){ 0 };
	s->overlays = s->v = txn_layers(r, &s->n);
	for (size_t i = 0; i < s->n && is_open(r); i++)
		if (s->v[i].away && !s->v[i].untouched)
			return layer_lost(r, s->v[i].host, s->v[i].upper, e);
	if (!txn_in_place(r) || r->state == TXN_PRUNED || r->state == TXN_COMMITTED)
		return 0;
	if (make_pair(r, s, e) < 0)
		return -1;
	s->v = xmalloc((s->n + 1) * sizeof(*s->v));
	memcpy(s->v, s->overlays, s->n * sizeof(*s->v));
	s->v[s->n++] = (struct change_layer){ .host = txn_in_place(r),
					      .base = s->pair.names[0],
					      .upper = s->pair.names[1] };
	return 0;
}

void txn_sides_close(struct txn_sides *s)
{
	if (s->v != s->overlays)
		free(s->v);
	free(s->overlays);
	timeline_pair_free(&s->pair);
	*s = (struct txn_sides){ 0 };
}

int inplace_keep(struct home *h, struct txn *t, struct err *e)
{
	AUTO_FREE char *reason = NULL;

	if (!txn_in_place(&t->rec) || t->rec.state != TXN_FROZEN)
		return 0;
	reason = xstrdup(t->rec.reason ? t->rec.reason : "exit");
	return txn_discard(h, t, t->rec.exit_status, reason, e) < 0 ? -1 : 1;
}

/* Is the tree what it was at the end? */
static bool is_as_left(const struct txn_record *r)
{
	struct ck_state end = { 0 };
	AUTO_CLOSE int fd = trees_past(r, END);
	struct err ignored;
	bool same = false;
	struct trees t;

	if (fd >= 0 && trees_open(r, -1, &t, &ignored) == 0 &&
	    trees_scan(&t, fd, &end, &ignored) == 0)
		same = !timeline_differ(&end, &t.now);
	ck_state_free(&end);
	if (fd >= 0)
		trees_close(&t);
	return same;
}

int inplace_resume(const struct txn *t, struct err *e)
{
	AUTO_CLOSE int place = -1;
	int r;

	if (!txn_in_place(&t->rec) || !is_as_left(&t->rec))
		return 0;
	place = inplace_open(&t->rec, e);
	if (place < 0)
		return -1;
	r = rmtree_at(place, END, NULL);
	return r < 0 ? err_sys(e, r, "cannot go on in %s", txn_in_place(&t->rec)) : 1;
}
