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
#include "ckpt/state.h"
#include "inplace/nested.h"
#include "inplace/parts.h"
#include "inplace/trees.h"
#include "sys/btrfs.h"
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
int inplace_check(const char *dir, char *const *closed, struct err *e)
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
		return nested_refuse(fd, dir, closed, NULL, e);
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

int inplace_check_again(const struct txn *t, struct err *e)
{
	const char *dir = txn_in_place(&t->rec);
	AUTO_CLOSE int fd = -1;

	if (!dir)
		return 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, errno, "%s", dir)
		      : nested_refuse(fd, dir, NULL, &t->rec, e);
}

int inplace_begin(const struct txn *t, struct err *e)
{
	if (inplace_snapshot(&t->rec, BEFORE, e) < 0 || inplace_check_again(t, e) < 0)
		return -1;
	await_tick();
	return 0;
}

static bool has_snapshot(int place, const char *name)
{
	struct stat st;

	return fstatat(place, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool inplace_has_end(const struct txn *t)
{
	struct err ignored;
	AUTO_CLOSE int place = -1;

	if (!txn_in_place(&t->rec))
		return true;
	place = inplace_open(&t->rec, &ignored);
	return place >= 0 && has_snapshot(place, END);
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
	/* Every later change has another time than the last change of the command. */
	await_tick();
	inplace_snapshot(&t->rec, END, &ignored);
}

/* --- what differs --- */

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
	    trees_scan(&t, fd, &end, NULL, &ignored) == 0)
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
