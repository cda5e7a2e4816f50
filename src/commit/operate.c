/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/operate.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "journal/op_rows.h"
#include "layer/meta.h"
#include "plan/checks.h"
#include "plan/stage.h"
#include "snap/store.h"
#include "sys/fs.h"
#include "sys/ns.h"
#include "txn/begin.h"
#include "txn/find.h"
#include "txn/home.h"
#include "txn/move.h"
#include "txn/parts.h"

/*
 * Below this, fsync of each file and directory; above, syncfs, which also waits for
 * everybody else's data. Measured on ext4: the lines cross at a few hundred. An fsync has the disk
 * empty its cache, even for a file that is on it already; SYNC_WORTH is what can be written in
 * that time. If no more than that for each file waits to be written on the whole machine, syncfs
 * is faster.
 */
enum { SYNC_EACH_MAX = 200, SYNC_WORTH = 128 * 1024, LOST_DIR_TRIES = 100 };

/*
 * When fault points are counted, work is done in one order, whatever the machine does
 * meanwhile.
 */
#ifdef STET_FAULTS
enum { COUNTED = 1 };
#else
enum { COUNTED = 0 };
#endif

/* The coarse clock: the one that the kernel stamps files with. */
int64_t operate_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * The fine clock: the kernel may stamp with it a file whose times were read; it is ahead of
 * the coarse clock.
 */
static int64_t fine_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A time that nothing before us bears, and nothing from now on an earlier one. @past: the latest
 * that can have been stamped. */
static int64_t time_past(const struct txn *t, int64_t past)
{
	const struct timespec half_ms = { .tv_nsec = 500000 };
	int64_t exact = t->lock >= 0 ? exact_time(t->lock) : 0;

	if (exact > past)
		return exact;
	while (operate_now() <= past)
		nanosleep(&half_ms, NULL);
	return operate_now();
}

int64_t operate_begun(const struct txn *t)
{
	return time_past(t, operate_now());
}

void operate_tell(const struct operation *o, struct commit_result *res)
{
	size_t n = res->conflicts.n;

	path_notes_add(&res->conflicts, o->where, o->why);
	if (res->conflicts.n > n)
		res->conflicts.v[n].stuck = o->stuck;
}

void operate_conflict(const struct txn *t, const struct operation *o,
		      struct commit_result *res, const char *done, struct err *e)
{
	if (o->where[0])
		operate_tell(o, res);
	err_set(e, ERR_CONFLICT, "the host has changed since t%lld; nothing was %s",
		(long long)t->rec.id, done);
}

int operate_guard(struct home *h, bool wait, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/commit.lock", h->dir);
	AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, errno, "cannot open %s", path);
	while (FAULT_AT("operate.lock") ||
	       flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return err_set(e, ERR_STATE, "a commit is under way");
		if (errno != EINTR)
			return err_sys(e, errno, "cannot lock %s", path);
	}
	return TAKE_FD(fd);
}

int operate_open(const struct txn *t, bool every, struct operation *o, struct err *e)
{
	struct rlimit lim;

	*o = (struct operation){ .dir = -1 };
	o->dir = open(t->rec.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (o->dir < 0)
		return err_sys(e, errno, "cannot open %s", t->rec.dir);
	/* Deep trees are walked with a descriptor per level. */
	if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
	o->layers = txn_layers(&t->rec, &o->nlayers);
	/* A replaced object goes with all its attributes. */
	for (size_t i = 0; i < o->nlayers; i++) {
		struct change_layer *l = &o->layers[i];
		AUTO_FREE char *dir = xstrndup(l->upper,
					       strlen(l->upper) - strlen("/up"));

		l->every = l->brief = every;
		l->unmounted = !l->away && layer_unmounted(dir, l->host);
	}
	if (apply_open(o->layers, o->nlayers, &o->apply, e) < 0) {
		operate_close(o);
		return -1;
	}
	return 0;
}

static int unmounted(const struct change_layer *l, struct err *e)
{
	err_set(e, ERR_STATE, "%s is not the filesystem that it was when the command ran",
		l->host);
	return err_hint(e, "mount that again");
}

static int reach(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct operation *o = arg;
	const struct change_layer *l = &o->layers[r->layer];

	if (r->layer >= o->nlayers || (!l->away && !l->unmounted))
		return 0;
	if (l->unmounted)
		return unmounted(l, e);
	err_set(e, ERR_STATE, "what it needs of %s is not there", l->upper);
	return err_hint(e, "it was on the filesystem of %s: mount that again", l->host);
}

int operate_mounts(const struct operation *o, struct err *e)
{
	for (size_t i = 0; i < o->nlayers; i++)
		if (o->layers[i].unmounted && !layer_holds_nothing(o->layers[i].upper))
			return unmounted(&o->layers[i], e);
	return 0;
}

int operate_reach(struct operation *o, struct err *e)
{
	bool away = false;

	for (size_t i = 0; i < o->nlayers; i++)
		away = away || o->layers[i].away || o->layers[i].unmounted;
	return away ? plan_each(o->plan, false, reach, o, e) : 0;
}

void operate_close(struct operation *o)
{
	plan_close(o->plan);
	apply_close(o->apply);
	free(o->layers);
	cleanup_close(&o->dir);
	op_record_free(&o->op);
}

static int sync_staged(void *arg, const struct plan_rec *r, struct err *e)
{
	/* Nothing is staged where the host's is only to go. */
	return r->after.mode ? apply_sync_staged(((struct operation *)arg)->apply, r, e)
			     : 0;
}

static int sync_dirs(void *arg, const struct plan_rec *r, struct err *e)
{
	return apply_sync_dirs(((struct operation *)arg)->apply, r, e);
}

static bool is_many(const struct operation *o)
{
	return o->objects > SYNC_EACH_MAX || plan_count(o->plan) > SYNC_EACH_MAX;
}

int operate_sync_staged(struct operation *o, struct err *e)
{
	if (o->settled && !apply_touched(o->apply))
		return 0;
	if (is_many(o) || (!COUNTED && fs_unwritten() / SYNC_WORTH < o->objects))
		return apply_syncfs(o->apply, e);
	return plan_each(o->plan, false, sync_staged, o, e);
}

static bool is_foreign(const struct ident *id)
{
	return id->mode && id->gid != getegid();
}

static int check_rights(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct txn *t = arg;

	if (!meta_names_others(r->xbefore, r->nxbefore) &&
	    !meta_names_others(r->xafter, r->nxafter) && !is_foreign(&r->before) &&
	    !is_foreign(&r->after))
		return 0;
	err_set(e, ERR_UNSUPPORTED,
		"t%lld has unreadable directories; with these, an ordinary user cannot "
		"change what belongs to other groups or has ACLs that name others",
		(long long)t->rec.id);
	return err_hint(e,
			"make them readable first: stet explore t%lld -- chmod u+rwx "
			"DIRECTORY",
			(long long)t->rec.id);
}

/*
 * Looking into directories of mode 000 has cost us our other groups and ids (ns_gain_override):
 * ACLs that name them could not be set any more, and the groups of files are not seen. Said now,
 * while nothing is promised.
 */
int operate_rights(const struct operation *o, struct txn *t, struct err *e)
{
	return ns_has_override() ? plan_each(o->plan, false, check_rights, t, e) : 0;
}

static int sync_names(struct operation *o, struct err *e)
{
	if (is_many(o))
		return apply_syncfs(o->apply, e);
	return plan_each(o->plan, false, sync_dirs, o, e);
}

void operate_note(struct operation *o, const struct plan_rec *r)
{
	const char *host = o->layers[r->layer].host;

	snprintf(o->where, sizeof(o->where), "%s/%s", strcmp(host, "/") == 0 ? "" : host,
		 r->rel);
	snprintf(o->why, sizeof(o->why), "%s", apply_why(o->apply));
	/* A directory that replaced something makes room with all that is in it. */
	o->stuck = apply_lost_dir(o->apply) || (r->kind == PLAN_MKDIR && !r->before.mode);
}

static int step_done(struct operation *o, const struct plan_rec *r, int x)
{
	if (x < 0)
		operate_note(o, r);
	else if (o->progress)
		o->progress(o->progress_arg, ++o->done, plan_count(o->plan));
	return x;
}

typedef int step_fn(struct apply *a, const struct plan_rec *r, struct err *e);

/*
 * On the way back a conflict stops nothing: somebody has changed what we had put there, and
 * his version stays. Anything else would leave the tree between old and new. If it is
 * the directory that is missing, somebody may be moving it just now: that is waited for.
 *
 * What a commit or redo has taken away is left to him then. What an undo would have put back stays
 * where it is: of a step that was not taken back it is still what the next undo needs.
 */
static int step(struct operation *o, const struct plan_rec *r, step_fn *fn, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int x = fn(o->apply, r, e);

	for (int i = 0; i < LOST_DIR_TRIES && x < 0 && o->reversing &&
			e->kind == ERR_CONFLICT && apply_lost_dir(o->apply);
	     i++) {
		nanosleep(&pause, NULL);
		x = fn(o->apply, r, e);
	}
	if (x < 0 && o->reversing && e->kind == ERR_CONFLICT)
		x = o->op.kind == OP_UNDO ? apply_stay(o->apply, r, e)
					  : apply_leave(o->apply, r, e);
	return step_done(o, r, x);
}

static int forward(void *arg, const struct plan_rec *r, struct err *e)
{
	return step(arg, r, apply_forward, e);
}

/* Directories' attributes wait until everything is back in them. */
static int backward(void *arg, const struct plan_rec *r, struct err *e)
{
	return r->kind == PLAN_DIR ? 0 : step(arg, r, apply_backward, e);
}

static int backward_dirs(void *arg, const struct plan_rec *r, struct err *e)
{
	return r->kind == PLAN_DIR ? step(arg, r, apply_backward, e) : 0;
}

static int verify(void *arg, const struct plan_rec *r, struct err *e)
{
	struct operation *o = arg;

	return step_done(o, r, apply_verify(o->apply, r, e));
}

static int run(struct operation *o, bool backwards, bool reversing, struct err *e)
{
	int r;

	o->reversing = reversing;
	apply_decided(o->apply, o->own, reversing);
	apply_began(o->apply, o->op.begun_ns);
	if (!backwards)
		return plan_each(o->plan, false, forward, o, e);
	r = plan_each(o->plan, true, backward, o, e);
	return r == 0 ? plan_each(o->plan, false, backward_dirs, o, e) : r;
}

struct syncing {
	struct apply *a;
	struct err e;
	int r;
};

static void *sync_meanwhile(void *arg)
{
	struct syncing *s = arg;

	s->r = apply_syncfs(s->a, &s->e);
	return NULL;
}

/*
 * A thread that does nothing but wait for the disk. No signal is its business. It is gone before
 * anything else begins: a process with two threads cannot enter a user namespace.
 */
static bool start_sync(struct syncing *s, pthread_t *thread)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	started = !COUNTED && pthread_create(thread, NULL, sync_meanwhile, s) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/*
 * After the steps of a commit: the last look at what was replaced, and names on the disk. Both
 * must be done before it is reported, in whichever order; the disk takes its time, and the looks
 * are taken in it.
 */
static int settle(struct operation *o, struct err *e)
{
	struct syncing s = { .a = o->apply };
	pthread_t thread;
	bool meanwhile = is_many(o) && start_sync(&s, &thread);
	int r = plan_each(o->plan, false, verify, o, e);

	if (meanwhile)
		pthread_join(thread, NULL);
	else if (r == 0)
		s.r = sync_names(o, &s.e);
	if (r == 0 && s.r < 0)
		*e = s.e;
	return r == 0 ? s.r : r;
}

static int move(struct home *h, struct txn *t, struct operation *o, enum txn_state to,
		enum op_state op_to, int64_t at, struct err *e)
{
	const struct txn_step s = { to, JOURNAL_SYNC, .op = &o->op, .op_to = op_to,
				    .op_ns = at };

	return txn_move(h, t, &s, e);
}

/* Takes the steps back that were done, after a conflict or a failure half way. */
static int reverse(struct home *h, struct txn *t, struct operation *o, bool backwards,
		   struct err *e)
{
	o->progress = NULL;
	if (o->op.state == OP_APPLYING &&
	    move(h, t, o, t->rec.state, OP_REVERSING, 0, e) < 0)
		return -1;
	if ((!FAULT_SKIP("operate.reverse") && run(o, !backwards, true, e) < 0) ||
	    sync_names(o, e) < 0)
		return -1;
	return move(h, t, o, o->op.before, OP_REVERSED, time_past(t, fine_now()), e);
}

/* @how: NULL if it was done. */
static void note(struct home *h, const struct op_record *op, const char *how)
{
	audit_op(home_books(h), &(struct audit_op){ .event = op_kind_name(op->kind),
						    .txn = op->txn,
						    .op = op->id,
						    .reason = how,
						    .changes = op->changes });
}

int operate(struct home *h, struct txn *t, struct operation *o, struct err *e)
{
	void (*io)(int) = signal(SIGIO, SIG_IGN); /* leases tell of openers by it */
	bool backwards = o->op.kind == OP_UNDO;
	struct err second = { 0 };
	char where[sizeof(o->where)], why[sizeof(o->why)];
	int64_t moved_at;
	int r = -1;

	if (o->op.state == OP_APPLYING) {
		r = run(o, backwards, false, e);
		moved_at = fine_now();
		if (r == 0)
			r = backwards ? sync_names(o, e) : settle(o, e);
		if (r == 0)
			r = move(h, t, o, o->op.after, OP_DONE, time_past(t, moved_at),
				 e);
		if (r == 0)
			note(h, &o->op, NULL);
	} else {
		err_set(e, ERR_CONFLICT, "the host changed meanwhile");
	}
	if (r < 0) {
		memcpy(where, o->where, sizeof(where));
		memcpy(why, o->why, sizeof(why));
		if (reverse(h, t, o, backwards, &second) < 0) {
			*e = second;
			err_hint(e, "`stet recover` goes on with it");
		} else {
			note(h, &o->op, "reversed");
		}
		memcpy(o->where, where, sizeof(where));
		memcpy(o->why, why, sizeof(why));
	}
	signal(SIGIO, io);
	return r;
}
