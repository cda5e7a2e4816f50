/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "ckpt/apply.h"
#include "ckpt/compare.h"
#include "ckpt/file.h"
#include "ckpt/pair.h"
#include "ckpt/place.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "journal/ckpt_rows.h"
#include "journal/op_rows.h"
#include "sys/mountinfo.h"
#include "timeline/mount.h"
#include "timeline/parts.h"
#include "timeline/take.h"
#include "timeline/thin.h"
#include "txn/begin.h"
#include "txn/check.h"
#include "txn/find.h"
#include "txn/marks.h"
#include "txn/parts.h"
#include "txn/state.h"

/*
 * A file beside the states while a running sandbox is being changed: is the change half done?
 * The process that carries out the steps writes it (live.h).
 */
#define MARK "half"

/* Opens a directory of ours, made where it is missing. fd, or -errno. */
static int own_dir(const char *parent, bool make)
{
	AUTO_FREE char *path = xasprintf("%s/" CKPT_DIR, parent);
	int fd;

	if (make && (FAULT_AT("ckpt.mkdir") || mkdir(path, 0700) < 0) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_layer(const struct layer_record *r, const struct change_layer *cl,
		      bool change, struct ck_layer *l, struct err *e)
{
	*l = (struct ck_layer){ .up = -1,
				.host = -1,
				.objects = -1,
				.live = -1,
				.past = -1,
				.path = cl->host,
				.hidden = cl->hidden,
				.never = cl->never,
				.lax = geteuid() != 0 };
	/* The layer held nothing when it was last seen. */
	if (cl->untouched)
		return 0;
	l->up = open(cl->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* The command may have taken read permission away from the owner. */
	if (l->up < 0 && errno == EACCES)
		l->up = open(cl->upper, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->up < 0)
		return err_sys(e, errno, "cannot open %s", cl->upper);
	l->host = open(cl->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (l->host < 0)
		return err_sys(e, errno, "cannot open %s", cl->host);
	l->objects = own_dir(r->dir, change);
	if (l->objects < 0 && (change || l->objects != -ENOENT))
		return err_sys(e, l->objects, "cannot open the checkpoints of %s",
			       cl->host);
	return 0;
}

static int open_layers(struct timeline *c, bool change, struct err *e)
{
	const struct txn_record *r = &c->t->rec;
	size_t k = 0;

	if (!c->changes)
		c->changes = txn_layers(r, &c->layers.n);
	c->layers.v = xcalloc(c->layers.n + 1, sizeof(*c->layers.v));
	for (size_t i = 0; i < c->layers.n; i++)
		c->layers.v[i] = (struct ck_layer){
			.up = -1, .host = -1, .objects = -1, .live = -1, .past = -1
		};
	for (size_t i = 0; i < r->nlayers; i++)
		if (r->layers[i].kind == LAYER_OVERLAY) {
			if (open_layer(&r->layers[i], &c->changes[k], change,
				       &c->layers.v[k], e) < 0)
				return -1;
			k++;
		}
	return 0;
}

enum access { LOOK, CHANGE, RECOVER /* the lock is ours, whatever the state */ };

static int check_state(struct timeline *c, enum access how, bool *running, struct err *e)
{
	const struct txn_record *r = &c->t->rec;
	bool change = how == CHANGE;

	if (r->state == TXN_PRUNED || !r->dir)
		return err_set(e, ERR_STATE, "t%lld is pruned: its checkpoints are gone",
			       (long long)r->id);
	if (txn_in_place(r)) {
		err_set(e, ERR_STATE,
			"t%lld works in place: it has one snapshot and no checkpoints",
			(long long)r->id);
		return err_hint(e, "stet rollback t%lld goes back to the beginning",
				(long long)r->id);
	}
	*running = change && txn_look(r) == TXN_RUNNING;
	return change && !*running ? txn_pending(c->h, c->t, e) : 0;
}

/*
 * One process at a time; the lock of a process that dies is free. The lock is taken before the
 * sandbox is contacted, which serves one client at a time, too: two processes that each hold
 * one of the two would wait for ever.
 */
static int lock_checks(struct timeline *c, bool running, struct err *e)
{
	const struct txn_record *r = &c->t->rec;

	while (flock(c->dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(e, errno, "cannot lock the checkpoints of t%lld",
				       (long long)r->id);
	/*
	 * The sandbox may have to be asked for its layers, by a connection of its own: so
	 * before ours.
	 */
	c->changes = txn_layers(r, &c->layers.n);
	return running ? live_open(r->dir, &c->live, e) : 0;
}

/*
 * The process that was changing it has died, and its sandbox lives: the present state counts
 * as the command's.
 */
static int forget_change(struct timeline *c, struct err *e)
{
	int64_t id, back_to;

	if (journal_changing_next(c->h->journal, c->t->rec.id - 1, &id, &back_to, e) < 0)
		return -1;
	if (id != c->t->rec.id)
		return 0;
	unlinkat(c->dir, MARK, 0);
	return journal_changing_end(c->h->journal, id, e);
}

static int open_checks(struct home *h, struct txn *t, enum access how,
		       struct timeline **out, struct err *e)
{
	struct timeline *c = xcalloc(1, sizeof(*c));
	bool change = how != LOOK, running = false;
	int r;

	*c = (struct timeline){ .h = h, .t = t, .dir = -1, .mark = -1 };
	r = check_state(c, how, &running, e);
	if (r == 0) {
		c->dir = own_dir(t->rec.dir, change);
		if (c->dir < 0 && (change || c->dir != -ENOENT))
			r = err_sys(e, c->dir, "cannot open the checkpoints of t%lld",
				    (long long)t->rec.id);
	}
	if (r == 0 && change)
		r = lock_checks(c, running, e);
	if (r == 0 && c->live)
		r = forget_change(c, e);
	if (r == 0)
		r = open_layers(c, change, e);
	if (r == 0)
		r = journal_ckpt_all(h->journal, t->rec.id, &c->all, e);
	if (r < 0) {
		timeline_close(c);
		return -1;
	}
	*out = c;
	return 0;
}

int timeline_open(struct home *h, struct txn *t, bool change, struct timeline **out,
		  struct err *e)
{
	return open_checks(h, t, change ? CHANGE : LOOK, out, e);
}

static void release(struct timeline *c)
{
	for (size_t i = 0; i < c->layers.n && c->layers.v; i++) {
		cleanup_close(&c->layers.v[i].up);
		cleanup_close(&c->layers.v[i].host);
		cleanup_close(&c->layers.v[i].objects);
	}
	live_close(c->live);
	free(c->layers.v);
	free(c->changes);
	cleanup_close(&c->dir);
	cleanup_close(&c->mark);
	ckpt_records_free(&c->all);
}

void timeline_close(struct timeline *c)
{
	if (!c)
		return;
	release(c);
	free(c);
}

const struct ckpt_records *timeline_all(const struct timeline *c)
{
	return &c->all;
}

int64_t timeline_last(const struct timeline *c)
{
	return c->all.n ? c->all.v[c->all.n - 1].seq : 0;
}

int64_t timeline_before(const struct timeline *c, int64_t seq)
{
	int64_t before = 0;

	for (size_t i = 0; i < c->all.n && c->all.v[i].seq < seq; i++)
		before = c->all.v[i].seq;
	return before;
}

int timeline_exists(const struct timeline *c, int64_t seq, struct err *e)
{
	if (seq == 0)
		return 0;
	for (size_t i = 0; i < c->all.n; i++)
		if (c->all.v[i].seq == seq)
			return 0;
	err_set(e, ERR_USAGE, "t%lld has no checkpoint %lld", (long long)c->t->rec.id,
		(long long)seq);
	return err_hint(e, "see: stet log t%lld", (long long)c->t->rec.id);
}

/* At the beginning the roots of the layers look like the directories of the host. */
static void add_roots(struct timeline *c, struct ck_state *s)
{
	for (uint32_t i = 0; i < c->layers.n; i++) {
		const struct ck_layer *l = &c->layers.v[i];
		struct ck_entry en = { .layer = i, .rel = "", .link = "" };
		AUTO_BUF struct buf xattrs = BUF_INIT;
		struct stat host, up;

		if (ck_find(s, i, "") || fstat(l->host, &host) < 0 ||
		    fstat(l->up, &up) < 0)
			continue;
		ident_from(&host, &en.id);
		if (host.st_uid != up.st_uid)
			en.id.mode = up.st_mode;
		en.id.uid = up.st_uid;
		en.id.gid = up.st_gid;
		ck_pack(l->up, ".", &xattrs);
		en.xattrs = buf_str(&xattrs);
		en.nxattrs = xattrs.len;
		ck_state_add(s, ck_entry_new(&en));
	}
	ck_state_sort(s);
}

/* Of an unmounted layer only its last state is known: it is left out. */
static int without_away(struct timeline *c, struct ck_state *s, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct ck_entry *en = s->v[i];

		if (en->layer >= c->layers.n || c->layers.v[en->layer].up >= 0) {
			s->v[n++] = en;
			continue;
		}
		if (*en->rel) {
			err_set(e, ERR_STATE, "what it needs of %s is not there",
				c->changes[en->layer].host);
			while (i < s->n)
				s->v[n++] = s->v[i++];
			s->n = n;
			ck_state_free(s);
			return err_hint(e, "mount that again");
		}
		ck_unref(en);
	}
	s->n = n;
	return 0;
}

int timeline_state(struct timeline *c, int64_t seq, struct ck_state *s, struct err *e)
{
	*s = (struct ck_state){ 0 };
	if (timeline_exists(c, seq, e) < 0)
		return -1;
	if (c->dir >= 0 && ck_load(c->dir, seq, s, e) < 0)
		return err_wrap(e, "t%lld", (long long)c->t->rec.id);
	if (without_away(c, s, e) < 0)
		return -1;
	if (seq == 0)
		add_roots(c, s);
	return 0;
}

bool timeline_differ(const struct ck_state *a, const struct ck_state *b)
{
	size_t i = 0, k = 0;

	/* At the beginning the roots are not known: they alone make no difference. */
	for (; i < a->n || k < b->n; i++, k++) {
		if (i < a->n && k < b->n &&
		    ck_order(a->v[i]->layer, a->v[i]->rel, b->v[k]->layer,
			     b->v[k]->rel) == 0 &&
		    ck_same(a->v[i], b->v[k]))
			continue;
		return true;
	}
	return false;
}

static void add_record(struct timeline *c, const struct ckpt_record *r)
{
	struct ckpt_records *a = &c->all;

	a->v = xrealloc(a->v, (a->n + 1) * sizeof(*a->v));
	a->v[a->n] = *r;
	a->v[a->n].cause = xstrdup(r->cause);
	a->v[a->n].command = r->command ? xstrdup(r->command) : NULL;
	a->v[a->n].note = r->note ? xstrdup(r->note) : NULL;
	a->n++;
}

static char *maybe(const char *s)
{
	return s && *s ? xstrdup(s) : NULL;
}

/* Records state @now as the next checkpoint; @changing: it also ends a change. */
static int record(struct timeline *c, const struct ck_state *last,
		  const struct ck_state *now, const struct ckpt_wish *w, int64_t target,
		  bool changing, struct err *e)
{
	struct ckpt_record r = { .seq = timeline_last(c) + 1,
				 .time_ns = clock_ns(CLOCK_REALTIME),
				 .cause = xstrdup(w->cause),
				 .command = maybe(w->command),
				 .note = maybe(w->note),
				 .named = w->named,
				 .target = target };
	struct change_totals t;
	int x;

	x = ck_count(&c->layers, last, now, &t, e);
	if (x == 0)
		x = ck_save(c->dir, r.seq, timeline_last(c), last, now, e);
	if (x == 0) {
		r.added = t.added;
		r.modified = t.modified;
		r.deleted = t.deleted;
		r.bytes = t.bytes;
		x = changing ? journal_ckpt_conclude(c->h->journal, c->t->rec.id, &r, e)
			     : journal_ckpt_add(c->h->journal, c->t->rec.id, &r,
						JOURNAL_LAZY, e);
	}
	if (x == 0)
		add_record(c, &r);
	ckpt_record_free(&r);
	return x;
}

int timeline_thaw(struct timeline *c, struct err *e)
{
	if (!c->frozen)
		return 0;
	c->frozen = false;
	return live_thaw(c->live, e);
}

int timeline_take(struct timeline *c, const struct ckpt_wish *w,
		  const struct ckpt_record **out, struct err *e)
{
	struct ck_state last, now;
	int r = 0;

	*out = NULL;
	/* No process has run since: there is nothing to look for. */
	if (c->live && live_still(c->live, (uint64_t)timeline_last(c)))
		return 0;
	if (timeline_look(c, false, &last, &now, e) < 0)
		return -1;
	if (!timeline_differ(&last, &now)) {
		if (c->live)
			live_settled(c->live, (uint64_t)timeline_last(c));
	} else {
		r = record(c, &last, &now, w, -1, false, e);
		if (r == 0) {
			timeline_thin(c);
			*out = &c->all.v[c->all.n - 1];
		}
	}
	ck_state_free(&last);
	ck_state_free(&now);
	return r;
}

/* Notes of one checkpoint are put together up to this length; the inside may send many. */
enum { NOTES_MAX = 16384 };

/* Appends a note to the present one, if any; NULL: it would be too long. */
static char *add_note(const char *old, const char *more)
{
	if (!old || !more || strcmp(old, more) == 0)
		return xstrdup(more ? more : old ? old : "");
	if (strlen(old) + strlen(more) > NOTES_MAX)
		return NULL;
	return xasprintf("%s; %s", old, more);
}

/* Replaces the last record by @r, which owns its texts. */
static int replace_last(struct timeline *c, struct ckpt_record *r, struct err *e)
{
	struct ckpt_record *last = &c->all.v[c->all.n - 1];

	if (journal_ckpt_replace(c->h->journal, c->t->rec.id, r, e) < 0) {
		ckpt_record_free(r);
		return -1;
	}
	ckpt_record_free(last);
	*last = *r;
	return 0;
}

int timeline_label(struct timeline *c, const struct ckpt_wish *w, struct err *e)
{
	const struct ckpt_record *last = &c->all.v[c->all.n - 1];
	AUTO_FREE char *note = add_note(last->note, w->note);
	struct ckpt_record r = *last;

	if (!w->note && strcmp(last->cause, w->cause) == 0 && last->command &&
	    w->command && strcmp(last->command, w->command) == 0)
		return 0;
	r.cause = xstrdup(w->cause);
	r.command = maybe(w->command);
	r.note = maybe(note ? note : last->note);
	return replace_last(c, &r, e);
}

int timeline_adopt(struct timeline *c, const struct ckpt_wish *w, struct err *e)
{
	const struct ckpt_record *last = c->all.n ? &c->all.v[c->all.n - 1] : NULL;
	AUTO_FREE char *note = NULL;
	struct ckpt_record r;

	if (!last || (last->named && !w->named) || (!w->note && last->named == w->named))
		return 0;
	note = add_note(last->note, w->note);
	if (!note)
		return err_set(e, ERR_USAGE,
			       "checkpoint %lld has too long a note already",
			       (long long)last->seq);
	r = *last;
	r.named = w->named;
	r.cause = xstrdup(last->cause);
	r.command = maybe(last->command);
	r.note = maybe(note);
	return replace_last(c, &r, e) < 0 ? -1 : 1;
}

bool timeline_worth(struct home *h, int64_t txn)
{
	bool holds = false, asked = false;
	struct ckpt_records all;
	struct err e;

	if (journal_ckpt_all(h->journal, txn, &all, &e) < 0)
		return true;
	for (size_t i = 0; i < all.n; i++) {
		const struct ckpt_record *r = &all.v[i];

		holds = holds || r->added || r->modified || r->deleted;
		asked = asked || r->named || r->target >= 0;
	}
	ckpt_records_free(&all);
	return holds && asked;
}

/*
 * Notes where recovery goes back to; for a running sandbox it does so only if the change is
 * left half done.
 */
static int begin_change(struct timeline *c, int64_t back_to, struct err *e)
{
	char whole = LIVE_WHOLE;
	int r;

	txn_not_on_disk(&c->t->rec);
	r = untouched_drop(&c->t->rec);
	if (r < 0)
		return err_sys(e, r, "cannot change %s", c->t->rec.dir);
	if (c->live) {
		c->mark = openat(c->dir, MARK,
				 O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
				 0600);
		if (c->mark < 0 || pwrite(c->mark, &whole, 1, 0) != 1)
			return err_sys(e, errno, "cannot note that the change begins");
	}
	/* Undone operations were about another state: to redo them would commit a mixture. */
	if (journal_op_stale(c->h->journal, c->t->rec.id, e) < 0 ||
	    (!c->live && layers_own(&c->t->rec, e) < 0))
		return -1;
	return journal_changing_set(c->h->journal, c->t->rec.id, back_to, e);
}

/* The layers are whole again, changed or put back. */
static int end_change(struct timeline *c, struct err *e)
{
	int r = journal_changing_end(c->h->journal, c->t->rec.id, e);

	if (r == 0)
		unlinkat(c->dir, MARK, 0);
	return r;
}

/* Makes the layers what checkpoint @back_to says, whatever they are now. */
static int go_back(struct timeline *c, int64_t back_to, struct err *e)
{
	struct ck_state target, now;
	struct ck_scan s = { .layers = &c->layers, .prev = &target };
	int r = -1;

	if (timeline_state(c, back_to, &target, e) < 0)
		return -1;
	if (ck_scan(&s, &now, e) == 0) {
		r = ck_sync(&c->layers, &now, &target, e);
		ck_state_free(&now);
	}
	ck_state_free(&target);
	return r == 0 ? end_change(c, e) : -1;
}

static int steps_live(struct timeline *c, const struct ck_state *now,
		      const struct ck_state *target, const char *const *paths,
		      struct err *e)
{
	AUTO_CLOSE int steps = memfd_create("steps", MFD_CLOEXEC);
	uint64_t n;

	if (steps < 0)
		return err_sys(e, errno, "no memory");
	if (ck_plan(&c->layers, now, target, paths, steps, &n, e) < 0)
		return -1;
	return live_apply(c->live, &c->layers, steps, c->mark, e);
}

/*
 * Takes the steps back that were carried out through the mounted tree; all processes are still
 * stopped.
 */
static void take_back_live(struct timeline *c, const struct ck_state *now)
{
	struct ck_scan s = { .layers = &c->layers, .prev = now, .copy = true };
	struct ck_state half;
	const char mark = LIVE_HALF;
	struct err ignored;
	int r = -1;

	/* Even if all steps were done: recovery takes them back in a sandbox that is gone. */
	if (pwrite(c->mark, &mark, 1, 0) == 1 && ck_scan(&s, &half, &ignored) == 0) {
		r = steps_live(c, &half, now, NULL, &ignored);
		ck_state_free(&half);
	}
	/* If that fails the sandbox is gone, and recovery takes the steps back. */
	if (r == 0)
		end_change(c, &ignored);
}

static int change(struct timeline *c, const struct ck_state *now,
		  const struct ck_state *target, const char *const *paths, int64_t seq,
		  struct err *e)
{
	struct ckpt_wish w = { .cause = paths ? "restore" : "rollback" };
	struct ck_state last = { 0 }, after;
	struct ck_scan s = {
		.layers = &c->layers, .prev = now, .hint = target, .copy = true
	};
	struct err ignored;
	int r;

	if (c->live)
		r = steps_live(c, now, target, paths, e);
	else
		r = paths ? timeline_mount_go(c, now, target, paths, e)
			  : ck_sync(&c->layers, now, target, e);
	if (r == 0)
		r = FAULT_POINT("ckpt.changed") ? err_sys(e, EIO, "fault") : 0;
	if (r == 0)
		r = ck_scan(&s, &after, e);
	if (r < 0) {
		if (c->live)
			take_back_live(c, now);
		return -1;
	}
	/* A sandbox that is gone by now was changed before it ended. */
	timeline_thaw(c, &ignored);
	r = timeline_state(c, timeline_last(c), &last, e);
	if (r == 0)
		r = record(c, &last, &after, &w, seq, true, e);
	if (r == 0)
		unlinkat(c->dir, MARK, 0);
	else if (c->live)
		err_wrap(e, "it went back, but that could not be noted");
	ck_state_free(&last);
	ck_state_free(&after);
	return r;
}

struct any {
	bool found;
};

static int note_any(void *arg, const struct ck_diff *d, struct err *e)
{
	(void)d;
	(void)e;
	((struct any *)arg)->found = true;
	return 1;
}

int timeline_go(struct timeline *c, int64_t seq, const char *const *paths,
		struct timeline_gone *g, struct err *e)
{
	const struct ckpt_wish w = { .cause = paths ? "before restore"
						    : "before rollback" };
	struct ck_state last = { 0 }, now = { 0 }, target = { 0 };
	struct any any = { false };
	struct err second;
	int r;

	*g = (struct timeline_gone){ 0 };
	if (timeline_state(c, seq, &target, e) < 0)
		return -1;
	r = timeline_look(c, true, &last, &now, e);
	if (r == 0)
		r = ck_compare(&c->layers, &now, &target, paths, note_any, &any, e);
	if (r > 0)
		r = 0;
	if (r == 0 && any.found)
		r = ck_count(&c->layers, &now, &target, &g->totals, e);
	if (r == 0 && any.found && timeline_differ(&last, &now))
		r = record(c, &last, &now, &w, -1, false, e);
	g->before = timeline_last(c);
	if (r == 0 && any.found) {
		r = begin_change(c, g->before, e);
		if (r == 0) {
			r = change(c, &now, &target, paths, seq, e);
			g->after = timeline_last(c);
			/*
			 * Recovery takes back what cannot be taken back now, and must know of
			 * it: a write that failed may have reached the journal.
			 */
			if (r < 0 && !c->live &&
			    journal_changing_set(c->h->journal, c->t->rec.id, g->before,
						 &second) == 0)
				go_back(c, g->before, &second);
		}
	}
	timeline_thaw(c, &second);
	ck_state_free(&last);
	ck_state_free(&now);
	ck_state_free(&target);
	return r;
}

int timeline_kill(struct timeline *c, struct err *e)
{
	return c->live ? live_kill(c->live, e) : 0;
}

int64_t timeline_paused_us(const struct timeline *c)
{
	return c->live ? live_paused_us(c->live) : 0;
}

int timeline_preview(struct timeline *c, int64_t seq, struct change_totals *t,
		     struct err *e)
{
	struct ck_state last = { 0 }, now = { 0 }, target = { 0 };
	struct ck_scan s = { .layers = &c->layers, .prev = &last };
	int r;

	if (timeline_state(c, seq, &target, e) < 0)
		return -1;
	r = timeline_state(c, timeline_last(c), &last, e);
	if (r == 0)
		r = ck_scan(&s, &now, e);
	if (r == 0)
		r = ck_count(&c->layers, &now, &target, t, e);
	ck_state_free(&last);
	ck_state_free(&now);
	ck_state_free(&target);
	return r;
}

static int first_state(struct txn *t, struct err *e)
{
	struct timeline c = { .t = t, .dir = own_dir(t->rec.dir, true), .mark = -1 };
	struct ck_scan s = { .layers = &c.layers, .copy = true };
	struct ck_state none = { 0 }, now;
	int r;

	if (c.dir < 0)
		return err_sys(e, c.dir, "cannot make the first checkpoint");
	r = open_layers(&c, true, e);
	if (r == 0)
		r = ck_scan(&s, &now, e);
	if (r == 0) {
		r = ck_save(c.dir, 0, -1, &none, &now, e);
		ck_state_free(&now);
	}
	release(&c);
	return r;
}

int timeline_record(struct home *h, struct txn *t, struct err *e)
{
	if (!txn_start(t) && first_state(t, e) < 0) {
		txn_abandon(t);
		return -1;
	}
	return txn_record(h, t, e);
}

/* Does the mark exist, and say that the present state stays? */
static bool marked_whole(const struct txn_record *r)
{
	AUTO_FREE char *path = xasprintf("%s/" CKPT_DIR "/" MARK, r->dir);
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char mark;

	return fd >= 0 && read(fd, &mark, 1) == 1 && mark != LIVE_HALF;
}

int timeline_recover(struct home *h, struct txn *t, int64_t back_to, struct err *e)
{
	struct timeline *c;
	int64_t id;
	int r;

	if (t->lock < 0 || (t->rec.state != TXN_FROZEN && t->rec.state != TXN_ACTIVE))
		return journal_changing_end(h->journal, t->rec.id, e);
	live_await_end(t->rec.dir);
	if (open_checks(h, t, RECOVER, &c, e) < 0)
		return -1;
	/* The process that was changing it may have ended well meanwhile. */
	r = journal_changing_next(h->journal, t->rec.id - 1, &id, &back_to, e);
	if (r == 0 && id == t->rec.id)
		r = marked_whole(&t->rec) ? end_change(c, e) : go_back(c, back_to, e);
	timeline_close(c);
	return r;
}

int timeline_settle(struct home *h, struct txn *t, struct err *e)
{
	AUTO_FREE char *path = xasprintf("%s/" CKPT_DIR "/" MARK, t->rec.dir);
	int64_t id, back_to;

	if (access(path, F_OK) < 0)
		return 0;
	if (journal_changing_next(h->journal, t->rec.id - 1, &id, &back_to, e) < 0)
		return -1;
	return id == t->rec.id ? timeline_recover(h, t, back_to, e) : 0;
}
