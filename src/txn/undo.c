/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "txn/draft.h"
#include "txn/operate.h"
#include "txn/parts.h"
#include "txn/undone.h"

struct pick {
	bool redo;
	struct op_record found;
	bool have;
};

/* Newest first: the first that is not undone; for redo, the one undone last. */
static int pick_op(void *arg, struct op_record *r, struct err *e)
{
	struct pick *p = arg;

	(void)e;
	if (r->state != OP_DONE)
		return 0;
	if (!p->redo && (r->kind == OP_COMMIT || r->kind == OP_ROLLBACK) && !r->undone) {
		p->found = *r;
		*r = (struct op_record){ 0 };
		p->have = true;
		return 1;
	}
	if (p->redo && (r->kind == OP_COMMIT || r->kind == OP_ROLLBACK)) {
		/* Undone newest first, so the oldest in the undone run was undone last. */
		if (r->undone != 1)
			return 1;
		op_record_free(&p->found);
		p->found = *r;
		*r = (struct op_record){ 0 };
		p->have = true;
	}
	return 0;
}

static int find_op(struct home *h, const struct txn *t, int64_t id, bool redo,
		   struct op_record *out, struct err *e)
{
	struct pick p = { .redo = redo };

	if (id > 0)
		return journal_op_get(h->journal, id, out, e);
	if (journal_op_each(h->journal, t->rec.id, pick_op, &p, e) < 0)
		return -1;
	if (!p.have)
		return err_set(e, ERR_STATE, "nothing to %s in t%lld",
			       redo ? "redo" : "undo", (long long)t->rec.id);
	*out = p.found;
	return 0;
}

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
	if (txn_check(&t->rec, e) < 0)
		return -1;
	if (dry_run)
		return 0;
	if (journal_op_add(h->journal, &op, op.after, JOURNAL_SYNC, e) < 0)
		return -1;
	t->rec.state = op.after;
	res->op = op.id;
	txn_note(h, op_kind_name(op.kind), op.txn, op.id);
	return 0;
}

struct subset {
	const struct commit_wish *w;
	bool redo;
	struct operation *o;
	struct plan_writer *out;
	uint64_t n;
	struct buf dirs; /* that hold chosen paths: layer and path, one after the other */
};

static void dir_key(struct buf *key, uint32_t layer, const char *rel, size_t len)
{
	buf_reset(key);
	buf_addf(key, "%c%u/", '\0', layer);
	buf_add(key, rel, len);
	buf_addc(key, '\0');
}

static void note_parent(struct subset *s, const struct plan_rec *r)
{
	const char *slash = strrchr(r->rel, '/');
	AUTO_BUF struct buf key = BUF_INIT;

	dir_key(&key, r->layer, slash ? r->rel : ".",
		slash ? (size_t)(slash - r->rel) : 1);
	if (!memmem(buf_str(&s->dirs), s->dirs.len, buf_str(&key), key.len))
		buf_add(&s->dirs, buf_str(&key), key.len);
}

/* The directory of a chosen path stays as the commit left it, its mtime included. */
static int keep_parent(struct subset *s, const struct plan_rec *r, struct err *e)
{
	AUTO_BUF struct buf key = BUF_INIT;
	struct plan_rec copy = *r;

	dir_key(&key, r->layer, r->rel, strlen(r->rel));
	if (!r->before.mode ||
	    !memmem(buf_str(&s->dirs), s->dirs.len, buf_str(&key), key.len))
		return 0;
	copy.before.mtime = r->after.mtime;
	if (!(r->flags & PLAN_TIMES)) {
		copy.before.mode = r->after.mode;
		copy.before.uid = r->after.uid;
		copy.before.gid = r->after.gid;
	}
	copy.flags &= ~(unsigned)PLAN_XATTR;
	copy.nxbefore = copy.nxafter = 0;
	return plan_add_as(s->out, &copy, r->serial, e);
}

/* Is the host to win here? Only where there is something to win: 1. -1: *e is set. */
static int is_theirs(struct subset *s, const struct plan_rec *r, const char *path,
		     struct err *e)
{
	if (!draft_chosen(s->w->theirs, path) ||
	    apply_check(s->o->apply, r, s->redo, e) == 0)
		return 0;
	return e->kind == ERR_CONFLICT ? 1 : -1;
}

static int keep_chosen(void *arg, const struct plan_rec *r, struct err *e)
{
	struct subset *s = arg;
	const char *host = s->o->layers[r->layer].host;
	AUTO_FREE char *path = xasprintf("%s/%s", strcmp(host, "/") == 0 ? "" : host,
					 r->rel);
	struct plan_rec copy = *r;
	int theirs = is_theirs(s, r, path, e);

	if (theirs < 0)
		return -1;
	if (theirs || (s->w->paths && !draft_chosen(s->w->paths, path)))
		return r->kind == PLAN_DIR ? keep_parent(s, r, e) : 0;
	if (draft_chosen(s->w->ours, path))
		copy.flags |= PLAN_FORCE;
	s->n++;
	note_parent(s, r);
	/* Places in old/ go by the number that the step had in the commit. */
	return plan_add_as(s->out, &copy, r->serial, e);
}

/* A change list of its own with the chosen steps of another. */
static int choose(struct operation *o, const struct commit_wish *w, bool redo,
		  const char *from, const char *name, struct err *e)
{
	struct subset s = { .w = w, .redo = redo, .o = o };
	struct plan *p = NULL;
	uint64_t n;
	int r;

	if (plan_open(o->dir, from, &p, e) < 0)
		return -1;
	r = plan_create(o->dir, name, &s.out, e);
	if (r == 0)
		r = plan_each(p, false, keep_chosen, &s, e);
	if (r == 0 && !s.n)
		r = err_set(e, ERR_USAGE,
			    "none of these paths was changed by that commit");
	if (r == 0)
		r = plan_finish(s.out, &n, e);
	else
		plan_abandon(s.out);
	plan_close(p);
	buf_free(&s.dirs);
	return r;
}

/* What the operation is to be, according to what it repeats or takes back. */
static int describe(const struct txn *t, const struct op_record *target, bool redo,
		    const struct commit_wish *w, struct operation *o, struct err *e)
{
	bool part = w->paths && !redo, some = part || w->ours || w->theirs;
	char name[32];

	o->op = (struct op_record){ .txn = t->rec.id,
				    .kind = redo ? OP_REDO : OP_UNDO,
				    .state = OP_APPLYING,
				    .target = part ? 0 : target->id,
				    .before = t->rec.state,
				    .after = redo   ? target->after
					     : part ? t->rec.state
						    : TXN_FROZEN,
				    .begun_ns = operate_now() };
	if (!some) {
		o->op.plan = xstrdup(target->plan);
		return 0;
	}
	if (operate_plan_name(name, e) < 0 ||
	    choose(o, w, redo, target->plan, name, e) < 0)
		return -1;
	o->op.plan = xstrdup(name);
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
	path_notes_add(&f->res->conflicts, f->o->where, f->o->why);
	f->o->where[0] = '\0';
	return 0;
}

/* All conflicts at once, while nothing has been touched. */
static int look_ahead(struct operation *o, bool redo, struct commit_result *res,
		      struct err *e)
{
	struct foresight f = { o, res, redo };

	if (plan_each(o->plan, false, foresee, &f, e) < 0)
		return -1;
	return res->conflicts.n ? err_set(e, ERR_CONFLICT, "the host has changed") : 0;
}

static int carry_out(struct home *h, struct txn *t, bool redo, struct operation *o,
		     struct commit_result *res, struct err *e)
{
	enum txn_state moving = redo ? TXN_COMMITTING : TXN_UNDOING;

	if ((redo && operate_sync_staged(o, e) < 0) || operate_rights(o, t, e) < 0 ||
	    journal_op_add(h->journal, &o->op, moving, JOURNAL_SYNC, e) < 0)
		return -1;
	t->rec.state = moving;
	if (operate(h, t, o, e) < 0)
		return -1;
	res->op = o->op.id;
	return 0;
}

static int replay(struct home *h, struct txn *t, const struct op_record *target,
		  bool redo, const struct commit_wish *w, struct commit_result *res,
		  struct err *e)
{
	AUTO_CLOSE int guard = operate_guard(h, true, e);
	struct undone *put_back;
	struct operation o;
	int r;

	if (guard < 0 || operate_open(t, false, &o, e) < 0)
		return -1;
	put_back = undone_new(h, target->done_ns);
	o.progress = w->progress;
	o.progress_arg = w->progress_arg;
	if (!redo)
		apply_since(o.apply, target->done_ns, undone_put_back, put_back);
	r = describe(t, target, redo, w, &o, e);
	if (r == 0)
		r = plan_open(o.dir, o.op.plan, &o.plan, e);
	if (r == 0) {
		o.op.changes = res->changes = plan_count(o.plan);
		r = operate_reach(&o, e);
		if (r == 0)
			r = look_ahead(&o, redo, res, e);
		if ((r < 0 || w->dry_run) && strcmp(o.op.plan, target->plan) != 0)
			unlinkat(o.dir, o.op.plan, 0);
	}
	if (r == 0 && !w->dry_run)
		r = carry_out(h, t, redo, &o, res, e);
	if (r < 0 && e->kind == ERR_CONFLICT)
		operate_conflict(t, &o, res, redo ? "redone" : "undone", e);
	undone_free(put_back);
	operate_close(&o);
	return r;
}

int txn_undo(struct home *h, struct txn *t, int64_t op, const struct commit_wish *w,
	     struct commit_result *res, struct err *e)
{
	struct op_record target = { 0 };
	int r;

	*res = (struct commit_result){ 0 };
	if (txn_own(t, e) < 0 || find_op(h, t, op, false, &target, e) < 0)
		return -1;
	if (target.undone || target.state != OP_DONE)
		r = err_set(e, ERR_STATE, "operation %lld is undone already",
			    (long long)target.id);
	else if (target.kind == OP_ROLLBACK)
		r = flip(h, t, &target, false, w->dry_run, res, e);
	else
		r = replay(h, t, &target, false, w, res, e);
	op_record_free(&target);
	return r;
}

int txn_redo(struct home *h, struct txn *t, const struct commit_wish *w,
	     struct commit_result *res, struct err *e)
{
	struct op_record target = { 0 };
	int r;

	*res = (struct commit_result){ 0 };
	if (txn_own(t, e) < 0 || find_op(h, t, 0, true, &target, e) < 0)
		return -1;
	r = target.kind == OP_ROLLBACK ? flip(h, t, &target, true, w->dry_run, res, e)
				       : replay(h, t, &target, true, w, res, e);
	op_record_free(&target);
	return r;
}
