/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"
#include "commit/blame.h"
#include "commit/draft.h"
#include "commit/history.h"
#include "commit/operate.h"
#include "commit/undo.h"
#include "commit/undo_list.h"
#include "commit/undo_parts.h"
#include "host/moved.h"
#include "host/put_back.h"
#include "journal/op_rows.h"
#include "plan/checks.h"
#include "sys/mountinfo.h"
#include "txn/check.h"
#include "txn/end.h"
#include "txn/find.h"
#include "txn/home.h"
#include "txn/move.h"
#include "txn/parts.h"

/* Rollback and its undo touch nothing but the journal. */
static int flip(struct home *h, struct txn *t, const struct op_record *target, bool redo,
		bool dry_run, struct commit_result *res, struct err *e)
{
	struct op_record op = { .txn = t->rec.id,
				.kind = redo ? OP_REDO : OP_UNDO,
				.state = OP_DONE,
				.target = target->id,
				.before = t->rec.state,
				.after = redo ? TXN_ROLLED_BACK : TXN_FROZEN,
				.begun_ns = operate_now() };

	op.done_ns = op.begun_ns;
	if (t->rec.state != (redo ? TXN_FROZEN : TXN_ROLLED_BACK))
		return err_set(e, ERR_STATE, "t%lld is %s", (long long)t->rec.id,
			       txn_look_name(txn_look(&t->rec)));
	if (txn_check_data(&t->rec, e) < 0)
		return -1;
	if (dry_run)
		return 0;
	if (txn_move(h, t, &(struct txn_step){ op.after, JOURNAL_SYNC, .op = &op }, e) <
	    0)
		return -1;
	res->op = op.id;
	txn_note(h, op_kind_name(op.kind), op.txn, op.id);
	return 0;
}

static void deed_free(struct deed *d)
{
	standing_free(d->standing);
	history_free(&d->ops);
}

/* --- which commit, and how much of it --- */

struct census {
	const struct operation *o;
	const struct standing *standing;
	const char *const *paths;
	bool *met; /* for each of the paths: is there something? */
	uint64_t chosen, others;
	char *whole; /* a directory that moved as one, with a chosen path in it; or NULL */
};

/* Does it change more of a directory that was there before than its times? */
static bool sets_attributes(const struct plan_rec *r)
{
	const struct ident *a = &r->before, *b = &r->after;

	return a->mode && (r->flags & PLAN_XATTR || a->mode != b->mode ||
			   a->uid != b->uid || a->gid != b->gid);
}

static int count_step(void *arg, const struct plan_rec *r, struct err *e)
{
	struct census *c = arg;
	AUTO_FREE char *path = undo_path(c->o, r);
	struct plan_rec copy = *r;
	int stands = standing_step(c->standing, &copy, e);
	bool any = false;

	if (stands <= 0)
		return stands;
	for (size_t i = 0; c->paths[i]; i++) {
		const char *const one[] = { c->paths[i], NULL };

		if (chosen_has(one, path))
			any = c->met[i] = true;
		else if (!c->whole && r->flags & PLAN_IS_DIR && r->kind != PLAN_DIR &&
			 r->kind != PLAN_MKDIR && path_within(one[0], path))
			c->whole = xstrdup(path);
	}
	if (any)
		c->chosen++;
	else if (r->kind != PLAN_DIR || sets_attributes(r))
		c->others++;
	return 0;
}

/* What of @commit that stands is at the chosen paths? Sets d->standing. */
static int count_steps(struct operation *o, struct deed *d,
		       const struct op_record *commit, struct census *c, struct err *e)
{
	struct plan *p;
	int r;

	standing_free(d->standing);
	d->standing = NULL;
	if (standing_open(o->dir, &d->ops, commit, &d->standing, e) < 0 ||
	    plan_open(o->dir, commit->plan, &p, e) < 0)
		return -1;
	c->standing = d->standing;
	r = plan_each(p, false, count_step, c, e);
	plan_close(p);
	return r;
}

/* Somebody who names a path wants that taken back, too; of a pattern, what it matches. */
static const char *unmet(const struct census *c)
{
	for (size_t i = 0; c->paths[i]; i++)
		if (!c->met[i] && !chosen_is_pattern(c->paths[i]))
			return c->paths[i];
	return NULL;
}

static int refuse(const struct txn *t, const char *path, struct err *e)
{
	AUTO_BUF struct buf q = BUF_INIT;

	text_quote(&q, path, strlen(path));
	err_set(e, ERR_USAGE, "the commit that changed the other paths did not change %s",
		buf_str(&q));
	return err_hint(e, "one commit at a time; see: stet log --ops t%lld",
			(long long)t->rec.id);
}

/*
 * The newest commit that changed any of the paths. *part: something else of it would stay; or it
 * is not the newest operation, and those after it stay as they are.
 */
static int find_by_path(struct operation *o, const struct txn *t,
			const char *const *paths, struct deed *d, bool *part,
			struct err *e)
{
	AUTO_BUF struct buf q = BUF_INIT;
	AUTO_FREE char *whole = NULL;
	size_t n = 0;

	while (paths[n])
		n++;
	for (size_t i = d->ops.n; i > 0; i--) {
		const struct op_record *op = &d->ops.v[i - 1];
		AUTO_FREE bool *met = xcalloc(n + 1, sizeof(*met));
		struct census c = { .o = o, .paths = paths, .met = met };

		if (op->kind != OP_COMMIT || op->state != OP_DONE ||
		    op->undone != OP_STANDS || !op->plan)
			continue;
		if (count_steps(o, d, op, &c, e) < 0) {
			free(c.whole);
			return -1;
		}
		if (c.whole && !whole)
			whole = c.whole;
		else
			free(c.whole);
		if (!c.chosen)
			continue;
		if (unmet(&c))
			return refuse(t, unmet(&c), e);
		d->target = op;
		*part = c.others || op != history_undoable(&d->ops);
		return 0;
	}
	err_set(e, ERR_USAGE, "no commit of t%lld that stands changed these paths",
		(long long)t->rec.id);
	if (!whole)
		return -1;
	text_quote(&q, whole, strlen(whole));
	err_set(e, ERR_USAGE, "%.400s was committed as a whole", buf_str(&q));
	return err_hint(e, "take all of it back: stet undo t%lld DIRECTORY",
			(long long)t->rec.id);
}

/* Of which commit, and whether of all that stands of it. */
static int locate(const struct txn *t, struct deed *d, const struct commit_wish *w,
		  struct operation *o, bool *part, struct err *e)
{
	*part = d->redo && d->undo->part;
	if (d->redo)
		return 0;
	return w->paths ? find_by_path(o, t, w->paths, d, part, e)
			: standing_open(o->dir, &d->ops, d->target, &d->standing, e);
}

struct differing {
	struct operation *o;
	bool redo;
};

static int find_differing(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct differing *d = arg;
	int x = undo_is_dir_changed(d->o, d->redo, r, e);

	if (x)
		return x;
	return d->redo ? undo_is_gone_already(d->o, r, e)
		       : apply_is_taken(d->o->apply, r, e);
}

/*
 * Is something not as this list has it: must anything be put aside, has the host changed what a
 * directory holds, or deleted by itself what is to be deleted? 1, 0 or -1; opens o->plan.
 */
static int is_any_differing(struct operation *o, bool redo, const char *list,
			    struct err *e)
{
	struct differing d = { o, redo };

	if (plan_open(o->dir, list, &o->plan, e) < 0 || operate_reach(o, e) < 0)
		return -1;
	return plan_each(o->plan, false, find_differing, &d, e);
}

/*
 * Describes the operation, from the one that it repeats or takes back. @afresh: with a change
 * list of its own in any case, by what the host has now.
 */
static int describe(const struct txn *t, const struct deed *d, bool part, bool afresh,
		    const struct commit_wish *w, struct operation *o, struct err *e)
{
	struct commit_wish wish = *w;
	const char *list;
	char name[32];

	if (d->redo || !part)
		wish.paths = NULL;
	list = d->redo ? d->undo->plan : d->target->plan;
	o->op = (struct op_record){ .txn = t->rec.id,
				    .kind = d->redo ? OP_REDO : OP_UNDO,
				    .state = OP_APPLYING,
				    .target = d->target->id,
				    .part = part,
				    .before = t->rec.state,
				    .after = d->redo ? d->undo->before
					     : part  ? t->rec.state
						     : TXN_FROZEN,
				    .begun_ns = operate_begun(t) };
	if (!afresh && !wish.paths && !wish.ours && !wish.theirs &&
	    (!d->standing || standing_is_plain(d->standing))) {
		int differs = is_any_differing(o, d->redo, list, e);

		if (differs <= 0) {
			o->op.plan = xstrdup(list);
			return differs;
		}
		plan_close(o->plan);
		o->plan = NULL;
	}
	if (operate_plan_name(name, e) < 0 ||
	    undo_list_make(o, &wish, d, list, name, e) < 0)
		return -1;
	o->op.plan = xstrdup(name);
	o->own = true;
	return 0;
}

struct foresight {
	struct operation *o;
	struct commit_result *res;
	bool redo;
};

static int foresee(void *arg, const struct plan_rec *r, struct err *e)
{
	struct foresight *f = arg;

	if (apply_check(f->o->apply, r, f->redo, e) == 0)
		return 0;
	if (e->kind != ERR_CONFLICT)
		return -1;
	operate_note(f->o, r);
	operate_tell(f->o, f->res);
	f->o->where[0] = '\0';
	return 0;
}

/* All conflicts at once, while nothing has been touched. */
static int look_ahead(struct operation *o, bool redo, struct commit_result *res,
		      struct err *e)
{
	struct foresight f = { o, res, redo };

	if (plan_each(o->plan, false, redo ? redo_note_shared : undo_note_shared,
		      o->apply, e) < 0)
		return -1;
	if (plan_each(o->plan, false, foresee, &f, e) < 0)
		return -1;
	return res->conflicts.n ? err_set(e, ERR_CONFLICT, "the host has changed") : 0;
}

static int get_ready(const struct txn *t, const struct deed *d, bool part, bool afresh,
		     const struct commit_wish *w, struct operation *o,
		     struct commit_result *res, struct err *e)
{
	if (describe(t, d, part, afresh, w, o, e) < 0 ||
	    (!o->plan && plan_open(o->dir, o->op.plan, &o->plan, e) < 0))
		return -1;
	o->op.changes = res->changes = plan_count(o->plan);
	res->part = o->op.part;
	apply_decided(o->apply, o->own, false);
	return operate_reach(o, e) < 0 ? -1 : look_ahead(o, d->redo, res, e);
}

/* Steps that met a conflict are looked at once more, with the contents of the files. */
static int get_ready_again(const struct txn *t, const struct deed *d, bool part,
			   const struct commit_wish *w, struct operation *o,
			   struct commit_result *res, struct err *e)
{
	plan_close(o->plan);
	o->plan = NULL;
	op_record_free(&o->op);
	path_notes_free(&res->conflicts);
	return get_ready(t, d, part, true, w, o, res, e);
}

static int carry_out(struct home *h, struct txn *t, bool redo, struct operation *o,
		     struct commit_result *res, struct err *e)
{
	const struct txn_step moving = { redo ? TXN_COMMITTING : TXN_UNDOING,
					 JOURNAL_SYNC, .op = &o->op };

	if ((redo && operate_sync_staged(o, e) < 0) || operate_rights(o, t, e) < 0 ||
	    txn_move(h, t, &moving, e) < 0)
		return -1;
	if (operate(h, t, o, e) < 0)
		return -1;
	res->op = o->op.id;
	return 0;
}

/* Of whatever may have moved things here; also of what did not come to its end. */
static int64_t last_end(const struct history *hi)
{
	int64_t last = 0;

	for (size_t i = 0; i < hi->n; i++)
		if (hi->v[i].done_ns > last)
			last = hi->v[i].done_ns;
	return last;
}

/* Whose new times are nobody's work. */
struct excuses {
	struct put_back *put_back;
	struct after_commit *left;
};

static bool is_excused(void *arg, const char *path, const struct ident *id)
{
	const struct excuses *x = arg;

	/* A child is going to ask, which must not read the journal. */
	if (!*path)
		after_commit_read(x->left);
	return put_back_has(x->put_back, path, id) ||
	       after_commit_is_at(x->left, path, id);
}

static int64_t moved_at(void *arg, uint32_t layer, const char *rel,
			const struct ident *id)
{
	moved_read(arg);
	return id->mode ? moved_until(arg, layer, rel, id) : 0;
}

/* How what the host has is told from what operations of @t have left there. */
static struct moved *judge_by(struct home *h, const struct txn *t, const struct deed *d,
			      struct excuses *x, struct operation *o)
{
	struct moved *m = moved_new(h, t->rec.id, t->rec.begin_ns, o->dir);

	x->left = d->left;
	x->put_back = put_back_new(h, d->target->done_ns);
	apply_since(o->apply, d->redo ? 0 : d->target->done_ns, is_excused, x);
	apply_since_undo(o->apply, d->redo ? d->undo->begun_ns : 0);
	apply_moved(o->apply, &(struct apply_moves){
				      .all = moved_by_list(m, d->redo ? d->undo->plan
								      : d->target->plan),
				      .last = last_end(&d->ops),
				      .until = moved_at,
				      .arg = m });
	return m;
}

static int replay(struct home *h, struct txn *t, struct deed *d,
		  const struct commit_wish *w, struct commit_result *res, struct err *e)
{
	AUTO_CLOSE int guard = operate_guard(h, true, e);
	struct excuses excuses = { 0 };
	struct moved *moved = NULL;
	struct operation o;
	bool part;
	int r;

	if (guard < 0 || operate_open(t, false, &o, e) < 0)
		return -1;
	o.progress = w->progress;
	o.progress_arg = w->progress_arg;
	r = locate(t, d, w, &o, &part, e);
	if (r == 0)
		d->left = d->redo ? after_commit_new_redo(h, t, o.layers, o.nlayers)
				  : after_commit_new(h, t, d->target->id, o.layers,
						     o.nlayers);
	if (r == 0) {
		moved = judge_by(h, t, d, &excuses, &o);
		r = get_ready(t, d, part, false, w, &o, res, e);
		if (r < 0 && e->kind == ERR_CONFLICT && !o.own)
			r = get_ready_again(t, d, part, w, &o, res, e);
		if ((r < 0 || w->dry_run) && o.own)
			unlinkat(o.dir, o.op.plan, 0);
	}
	if (r == 0 && !w->dry_run)
		r = carry_out(h, t, d->redo, &o, res, e);
	if (r < 0 && e->kind == ERR_CONFLICT) {
		operate_conflict(t, &o, res, d->redo ? "redone" : "undone", e);
		blame_notes(h, t->rec.id, d->target->done_ns, &res->conflicts);
	}
	put_back_free(excuses.put_back);
	moved_free(moved);
	after_commit_free(d->left); /* before the layers that it asks about */
	d->left = NULL;
	operate_close(&o);
	return r;
}

static int nothing(const struct txn *t, const char *what, struct err *e)
{
	return err_set(e, ERR_STATE, "nothing to %s in t%lld", what,
		       (long long)t->rec.id);
}

/* Sets d->target, unless that is to be found by paths. */
static int find_undoable(const struct txn *t, struct deed *d, int64_t op, bool by_path,
			 struct err *e)
{
	if (by_path)
		return 0;
	d->target = op ? history_find(&d->ops, op) : history_undoable(&d->ops);
	if (!d->target && op)
		return err_set(e, ERR_USAGE, "t%lld has no operation %lld",
			       (long long)t->rec.id, (long long)op);
	if (!d->target)
		return nothing(t, "undo", e);
	return d->target->undone != OP_STANDS || d->target->state != OP_DONE
		       ? err_set(e, ERR_STATE, "operation %lld is undone already",
				 (long long)d->target->id)
		       : 0;
}

static int find_redoable(const struct txn *t, struct deed *d, struct err *e)
{
	d->undo = history_redoable(&d->ops);
	d->target = d->undo ? history_find(&d->ops, d->undo->target) : NULL;
	return d->target ? 0 : nothing(t, "redo", e);
}

static int do_it(struct home *h, struct txn *t, bool redo, int64_t op,
		 const struct commit_wish *w, struct commit_result *res, struct err *e)
{
	struct deed d = { .redo = redo };
	int r;
	TXN_CHECKED(h, t);

	*res = (struct commit_result){ 0 };
	if (txn_own(t, e) < 0 || history_read(h, t->rec.id, &d.ops, e) < 0)
		return -1;
	r = redo ? find_redoable(t, &d, e) : find_undoable(t, &d, op, w->paths, e);
	if (r == 0)
		r = d.target && d.target->kind == OP_ROLLBACK
			    ? flip(h, t, d.target, redo, w->dry_run, res, e)
			    : replay(h, t, &d, w, res, e);
	deed_free(&d);
	return r;
}

int txn_undo(struct home *h, struct txn *t, int64_t op, const struct commit_wish *w,
	     struct commit_result *res, struct err *e)
{
	return do_it(h, t, false, op, w, res, e);
}

int txn_redo(struct home *h, struct txn *t, const struct commit_wish *w,
	     struct commit_result *res, struct err *e)
{
	return do_it(h, t, true, 0, w, res, e);
}

struct teller {
	const struct change_layer *layers;
	size_t nlayers;
	path_fn *fn;
	void *arg;
};

static int tell_path(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct teller *t = arg;
	AUTO_FREE char *path = NULL;
	const char *host;

	if (r->kind == PLAN_LEAVE)
		return 0;
	if (r->layer >= t->nlayers)
		return 0; /* damaged: for the operation itself to say */
	host = t->layers[r->layer].host;
	path = xasprintf("%s/%s", strcmp(host, "/") == 0 ? "" : host, r->rel);
	return t->fn(t->arg, path, e);
}

int txn_op_paths(struct home *h, const struct txn *t, int64_t op, bool redo, path_fn *fn,
		 void *arg, struct err *e)
{
	AUTO_FREE struct change_layer *layers = NULL;
	AUTO_CLOSE int dir = -1;
	struct teller to = { .fn = fn, .arg = arg };
	const struct op_record *target;
	struct history ops;
	struct plan *p = NULL;
	int r = 0;

	to.layers = layers = txn_layers(&t->rec, &to.nlayers);
	/* Chosen paths may be of any commit that stands. */
	if (!redo && !op)
		return txn_each_step(h, &t->rec, tell_path, &to, e);
	if (history_read(h, t->rec.id, &ops, e) < 0)
		return -1;
	target = redo ? history_redoable(&ops) : history_find(&ops, op);
	if (target && target->plan)
		dir = open(t->rec.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		r = plan_open(dir, target->plan, &p, e);
	if (p) {
		r = plan_each(p, false, tell_path, &to, e);
		plan_close(p);
	}
	history_free(&ops);
	return r;
}
