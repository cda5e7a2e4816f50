/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/path.h"
#include "journal/op_rows.h"
#include "journal/txn_rows.h"
#include "snap/foreign.h"
#include "snap/store.h"
#include "sys/ext4.h"
#include "sys/fs.h"
#include "sys/mountinfo.h"
#include "txn/begin.h"
#include "txn/check.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/home.h"
#include "txn/marks.h"
#include "txn/move.h"
#include "txn/parts.h"
#include "txn/prune.h"
#include "txn/recycle.h"

/* A directory that exists is no error: its parent is ours and 0700. */
static int make_dir(const char *path, struct err *e)
{
	if ((FAULT_AT("begin.mkdir") || mkdir(path, 0700) < 0) && errno != EEXIST) {
		err_sys(e, errno, "cannot make %s", path);
		if (e->sys == ENOSPC || e->sys == EDQUOT)
			err_hint(
				e,
				"`stet prune` gives back what rolled-back transactions hold");
		return -1;
	}
	return 0;
}

/* The directory of a transaction in one store: <store>/<token>. */
static char *dir_in(const char *store, const char *token)
{
	return xasprintf("%s/%s", store, token);
}

/* Makes the directory of the transaction in one store, or takes over a clean one. */
static int make_top(const struct view *v, const char *store, const char *dir,
		    struct err *e)
{
	AUTO_BUF struct buf shape = BUF_INIT;

	for (size_t i = 0; i < v->nlayers; i++)
		recycle_shape(&shape, v->layers[i].kind,
			      strcmp(v->layers[i].store, store) == 0);
	if (recycle_take(dir, buf_str(&shape)) == 0)
		return 0;
	/*
	 * Files that are made again after a rollback must not wait for ext4 to skip the
	 * deleted inodes.
	 */
	if (!FAULT_AT("begin.spread"))
		ext4_spread(store);
	return make_dir(dir, e);
}

/*
 * Has the directory in the store of layer @i been made, for an earlier layer or for the state?
 */
static bool has_top(const struct view *v, size_t i, const char *own)
{
	const char *store = v->layers[i].store;

	for (size_t j = 0; j < i; j++)
		if (strcmp(v->layers[j].store, store) == 0)
			return true;
	return strcmp(store, own) == 0;
}

static int make_layer(struct home *h, struct view *v, size_t i, const char *own,
		      const char *token, struct err *e)
{
	struct view_layer *l = &v->layers[i];
	AUTO_FREE char *dir = dir_in(l->store, token), *memory = NULL;

	if (!has_top(v, i, own) && make_top(v, l->store, dir, e) < 0)
		return -1;
	free(l->dir);
	l->dir = xasprintf("%s/l%zu", dir, i);
	if (make_dir(l->dir, e) < 0 || layer_make(l, e) < 0)
		return -1;
	if (l->kind != LAYER_OVERLAY || !l->lax_owner ||
	    !path_within(v->workspace, l->host))
		return 0;
	memory = xasprintf("%s/looked", h->dir);
	return layer_adopt_foreign(l, v->workspace, memory, e);
}

/*
 * If a filesystem other than that of the workspace is full, the hint says how to leave it out.
 */
static int full_elsewhere(const struct view *v, const char *host, struct err *e)
{
	const struct mountpoint *m;
	struct mountinfo mi;

	if ((e->sys != ENOSPC && e->sys != EDQUOT) || mountinfo_read(&mi) < 0)
		return -1;
	m = mountinfo_of(&mi, host);
	if (m && !path_within(v->workspace, m->target))
		err_hint(
			e,
			"free some space there, or leave it out: --read-only '%s', or --hide '%s'",
			m->target, m->target);
	mountinfo_free(&mi);
	return -1;
}

/*
 * One empty directory for all runs: the mounts on it are seen only in the namespace of a
 * sandbox.
 */
static int make_stage(struct home *h, struct view *v, struct err *e)
{
	free(v->stage);
	v->stage = xasprintf("%s/mnt", h->dir);
	return make_dir(v->stage, e);
}

static void begin_exactly(struct txn *t)
{
	int64_t exact = exact_time(t->lock);

	t->exact = exact > 0;
	if (t->exact)
		t->rec.begin_ns = exact;
}

/*
 * Another process may hold the lock of a directory that was taken over: it was looking at the
 * transaction that left it (recover.c does). Then a new directory is made instead of waiting.
 */
static int lock_top(struct txn *t, struct err *e)
{
	t->lock = lock_take(t->rec.dir, false);
	if (t->lock == -EWOULDBLOCK) {
		AUTO_FREE char *aside = xasprintf("%s" GONE, t->rec.dir);

		if (rename(t->rec.dir, aside) < 0)
			return err_sys(e, errno, "cannot rename %s", t->rec.dir);
		if (make_dir(t->rec.dir, e) < 0)
			return -1;
		t->lock = lock_take(t->rec.dir, false);
	}
	return t->lock < 0 ? err_sys(e, t->lock, "cannot lock %s", t->rec.dir) : 0;
}

static int make_data(struct home *h, struct view *v, const char *token, struct txn *t,
		     struct err *e)
{
	AUTO_FREE char *store = xasprintf("%s/tx", h->dir);

	if (make_dir(store, e) < 0)
		return -1;
	t->rec.dir = dir_in(store, token);
	if (make_top(v, store, t->rec.dir, e) < 0)
		return -1;
	if (make_stage(h, v, e) < 0)
		return -1;
	if (lock_top(t, e) < 0)
		return -1;
	begin_exactly(t);
	for (size_t i = 0; i < v->nlayers; i++)
		if (make_layer(h, v, i, store, token, e) < 0)
			return full_elsewhere(v, v->layers[i].host, e);
	return 0;
}

static void record_layers(struct txn_record *r, const struct view *v)
{
	r->layers = xcalloc(v->nlayers, sizeof(*r->layers));
	for (r->nlayers = 0; r->nlayers < v->nlayers; r->nlayers++) {
		const struct view_layer *l = &v->layers[r->nlayers];

		r->layers[r->nlayers] = (struct layer_record){
			.kind = l->kind,
			.host = xstrdup(l->host),
			.dir = xstrdup(l->dir),
			.lax_owner = l->lax_owner
		};
	}
}

static void record_effects(struct txn_record *r, const struct view *v)
{
	r->effects = xcalloc(v->nthrough + v->nsockets + 1, sizeof(*r->effects));
	for (size_t i = 0; i < v->nthrough; i++)
		r->effects[r->neffects++] = (struct effect_record){
			.kind = xstrdup(
				v->in_place && strcmp(v->through[i], v->workspace) == 0
					? "in-place"
					: "write-through"),
			.what = xstrdup(v->through[i])
		};
	for (size_t i = 0; i < v->nsockets; i++)
		r->effects[r->neffects++] = (struct effect_record){
			.kind = xstrdup("socket"), .what = xstrdup(v->sockets[i])
		};
	if (!v->offline)
		r->effects[r->neffects++] = (struct effect_record){
			.kind = xstrdup("network"),
			.what = xstrdup("what was sent over the network")
		};
}

static void record_hidden(struct txn_record *r, const struct view *v)
{
	size_t n = 0;

	r->hidden = xcalloc(v->nhidden + v->nclosed + 1, sizeof(*r->hidden));
	for (; n < v->nhidden; n++)
		r->hidden[n] = xasprintf("%s%s", n < v->nstores ? "!" : "", v->hidden[n]);
	for (size_t i = 0; i < v->nclosed; i++)
		r->hidden[n++] = xasprintf("=%s", v->closed[i]);
}

static char **copy_argv(char *const argv[])
{
	size_t n = 0;
	char **v;

	while (argv[n])
		n++;
	v = xcalloc(n + 1, sizeof(*v));
	for (size_t i = 0; i < n; i++)
		v[i] = xstrdup(argv[i]);
	return v;
}

static void remove_prepared(const struct view *v, const char *token, struct txn *t)
{
	for (size_t i = 0; i < v->nlayers; i++) {
		AUTO_FREE char *dir = dir_in(v->layers[i].store, token);
		struct txn_record part = { .dir = dir };

		data_remove(&part, NULL);
	}
	if (t->rec.dir)
		data_remove(&t->rec, NULL);
	txn_close(t);
}

/*
 * The data comes first, under a random name. A process that deletes data without a row waits
 * for the guard.
 */
int txn_prepare(struct home *h, struct view *v, const char *name, char *const argv[],
		const char *options, struct txn *t, struct err *e)
{
	struct txn_record *r = &t->rec;
	char token[24];
	uint64_t salt;

	*t = (struct txn){ .lock = -1, .guard = home_guard(h, LOCK_SH) };
	if (t->guard < 0)
		return err_sys(e, t->guard, "cannot lock %s", h->dir);
	if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt)) {
		err_sys(e, errno, "no random numbers");
		txn_close(t);
		return -1;
	}
	snprintf(token, sizeof(token), "%016llx", (unsigned long long)salt);
	r->state = TXN_ACTIVE;
	r->name = name ? xstrdup(name) : NULL;
	r->workspace = xstrdup(v->workspace);
	r->argv = copy_argv(argv);
	r->options = xstrdup(options);
	r->exit_status = -1;
	r->begin_ns = clock_ns(CLOCK_REALTIME_COARSE);
	t->came_ns = clock_ns(CLOCK_REALTIME);
	if (make_data(h, v, token, t, e) < 0) {
		remove_prepared(v, token, t);
		return -1;
	}
	record_layers(r, v);
	record_effects(r, v);
	record_hidden(r, v);
	log_debug("layers made in %s", r->dir);
	return 0;
}

bool layer_holds_nothing(const char *dir)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n;

	return fd >= 0 && fs_count_few(fd, &n) == 0 && n == 0;
}

/*
 * Are all uppers empty? Then nothing of the host was copied before the command
 * (snap/foreign.c).
 */
static bool saw_nothing(const struct txn_record *r)
{
	for (size_t i = 0; i < r->nlayers; i++) {
		const struct layer_record *l = &r->layers[i];
		AUTO_FREE char *up = xasprintf("%s/up", l->dir);

		if (l->kind == LAYER_OVERLAY && !layer_holds_nothing(up))
			return false;
	}
	return true;
}

/* Waits until the clock that the kernel stamps files with is past @ns. Returns its time. */
static int64_t wait_for_files(int64_t ns)
{
	struct timespec next;
	int64_t now, tick;

	clock_getres(CLOCK_REALTIME_COARSE, &next);
	tick = next.tv_nsec;
	while ((now = clock_ns(CLOCK_REALTIME_COARSE)) <= ns) {
		next.tv_sec = (now + tick) / 1000000000;
		next.tv_nsec = (now + tick) % 1000000000;
		if (clock_ns(CLOCK_REALTIME) >= now + tick)
			sched_yield();
		else
			clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &next, NULL);
	}
	return now;
}

/*
 * A file that was written just before the run may have a time that the coarse clock has not
 * reached yet, and would pass for changed since. So the transaction begins when the clock has
 * passed that time; the sandbox is being built meanwhile. Where files were copied ahead, the
 * beginning was before the copying, and what the command writes must be newer than the copies.
 */
bool txn_start(struct txn *t)
{
	bool empty = saw_nothing(&t->rec);

	if (!empty) {
		for (size_t i = 0; i < t->rec.nlayers; i++)
			if (t->rec.layers[i].lax_owner)
				wait_for_files(layer_adopted_ns(t->rec.layers[i].dir));
	} else if (!t->exact) {
		t->rec.begin_ns = wait_for_files(t->came_ns);
	}
	return empty;
}

static void note_begin(struct home *h, const struct txn_record *r)
{
	audit_op(home_books(h),
		 &(struct audit_op){ .event = "begin",
				     .txn = r->id,
				     .workspace = r->workspace,
				     .policy = r->policy,
				     .argv = (const char *const *)r->argv });
}

/*
 * One journal write. A write that failed may have happened all the same. Then the data stays:
 * a row without data would be wrong, data without a row is deleted by prune.
 */
int txn_record(struct home *h, struct txn *t, struct err *e)
{
	int r;

	r = journal_txn_add(h->journal, &t->rec, JOURNAL_LAZY, e);
	if (r < 0 && e->kind == ERR_USAGE)
		data_remove(&t->rec, NULL);
	cleanup_close(&t->guard);
	t->guard = -1;
	if (r == 0)
		note_begin(h, &t->rec);
	if (r == 0)
		log_debug("t%lld recorded", (long long)t->rec.id);
	return r;
}

void txn_abandon(struct txn *t)
{
	data_remove(&t->rec, NULL);
	cleanup_close(&t->guard);
	t->guard = -1;
}

static int hint_mounts(const struct txn_record *r, struct err *e)
{
	return err_hint(
		e, "the mounts of this machine have changed since; use stet diff t%lld",
		(long long)r->id);
}

/*
 * A layer that is not in the view would seem to be empty. A layer that is away holds nothing:
 * txn_check_data() has seen to that.
 */
static int all_in_view(const struct txn_record *r, const struct view *v, struct err *e)
{
	for (size_t i = 0; i < r->nlayers; i++) {
		const struct layer_record *l = &r->layers[i];
		AUTO_FREE char *up = xasprintf("%s/up", l->dir);
		size_t k = 0;

		while (k < v->nlayers &&
		       (!v->layers[k].dir || strcmp(v->layers[k].dir, l->dir) != 0))
			k++;
		if (k < v->nlayers || l->kind != LAYER_OVERLAY || layer_away(up) ||
		    layer_holds_nothing(up))
			continue;
		err_set(e, ERR_STATE, "%s is not what it was when t%lld ran", l->host,
			(long long)r->id);
		return hint_mounts(r, e);
	}
	return 0;
}

int txn_again(const struct txn_record *r, const struct view *v, struct err *e)
{
	if (all_in_view(r, v, e) < 0)
		return -1;
	for (size_t i = 0; i < v->nlayers; i++)
		if (layer_resume(&v->layers[i], e) < 0)
			return -1;
	return 0;
}

int txn_resume(struct home *h, struct view *v, struct txn *t, struct err *e)
{
	int r;
	TXN_CHECKED(h, t);

	if (t->rec.state != TXN_FROZEN && t->rec.state != TXN_ACTIVE)
		return err_set(e, ERR_STATE, "t%lld is %s", (long long)t->rec.id,
			       txn_look_name(txn_look(&t->rec)));
	if (txn_own(t, e) < 0 || txn_check_data(&t->rec, e) < 0)
		return -1;
	if (all_in_view(&t->rec, v, e) < 0)
		return -1;
	txn_not_on_disk(&t->rec);
	r = untouched_drop(&t->rec);
	if (r < 0)
		return err_sys(e, r, "cannot change %s", t->rec.dir);
	/*
	 * Operations that were undone cannot be redone from here on, even if resuming fails
	 * later.
	 */
	if (make_stage(h, v, e) < 0 || journal_op_stale(h->journal, t->rec.id, e) < 0 ||
	    layers_own(&t->rec, e) < 0)
		return -1;
	for (size_t i = 0; i < v->nlayers; i++) {
		struct view_layer *l = &v->layers[i];

		if (!l->dir) {
			err_set(e, ERR_STATE, "%s was not part of t%lld when it ran",
				l->host, (long long)t->rec.id);
			return hint_mounts(&t->rec, e);
		}
		if (layer_resume(l, e) < 0)
			return -1;
	}
	if (t->rec.state != TXN_ACTIVE &&
	    txn_move(h, t, &(struct txn_step){ TXN_ACTIVE, JOURNAL_LAZY }, e) < 0)
		return -1;
	txn_note(h, "resume", t->rec.id, 0);
	return 0;
}
