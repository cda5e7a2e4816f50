/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/table.h"
#include "journal/op_rows.h"

static int keep_op(void *arg, struct op_record *r, struct err *e)
{
	struct history *hi = arg;

	(void)e;
	if ((hi->n & (hi->n - 1)) == 0)
		hi->v = xrealloc(hi->v, (hi->n ? 2 * hi->n : 8) * sizeof(*hi->v));
	hi->v[hi->n++] = *r;
	*r = (struct op_record){ 0 };
	return 0;
}

int history_read(struct home *h, int64_t txn, struct history *hi, struct err *e)
{
	*hi = (struct history){ 0 };
	if (journal_op_each(h->journal, txn, keep_op, hi, e) < 0) {
		history_free(hi);
		return -1;
	}
	for (size_t i = 0; i < hi->n / 2; i++) {
		struct op_record swap = hi->v[i];

		hi->v[i] = hi->v[hi->n - 1 - i];
		hi->v[hi->n - 1 - i] = swap;
	}
	return 0;
}

void history_free(struct history *hi)
{
	for (size_t i = 0; i < hi->n; i++)
		op_record_free(&hi->v[i]);
	free(hi->v);
	*hi = (struct history){ 0 };
}

const struct op_record *history_find(const struct history *hi, int64_t id)
{
	for (size_t i = 0; i < hi->n; i++)
		if (hi->v[i].id == id)
			return &hi->v[i];
	return NULL;
}

const struct op_record *history_undoable(const struct history *hi)
{
	for (size_t i = hi->n; i > 0; i--) {
		const struct op_record *r = &hi->v[i - 1];

		if (r->state == OP_DONE && r->undone == OP_STANDS &&
		    (r->kind == OP_COMMIT || r->kind == OP_ROLLBACK))
			return r;
	}
	return NULL;
}

const struct op_record *history_redoable(const struct history *hi)
{
	for (size_t i = hi->n; i > 0; i--) {
		const struct op_record *r = &hi->v[i - 1];

		if (r->state == OP_DONE && r->kind == OP_UNDO && r->redone == OP_STANDS)
			return r;
	}
	return NULL;
}

/* --- steps --- */

/* The fate of a step of the commit: what later operations have made of it. */
struct fate {
	bool gone;
	bool other; /* done in another way: the rest says how */
	enum plan_kind kind;
	unsigned flags;
	size_t attributes; /* 1 for the first of those kept; 0: as the commit's list says */
	struct ident before, after;
};

struct standing {
	int dir;
	bool gone;	     /* all that is not among the steps */
	struct table *steps; /* struct fate, by serial */
	/* Extended attributes, where a redo has met others and the user has decided. */
	struct plan_rec *attributes;
	size_t nattributes;
};

static void forget_steps(struct standing *s)
{
	for (size_t i = 0; i < s->nattributes; i++)
		plan_rec_free(&s->attributes[i]);
	free(s->attributes);
	s->attributes = NULL;
	s->nattributes = 0;
	table_free(s->steps);
	s->steps = table_new(s->dir, sizeof(struct fate));
}

struct reading {
	struct standing *s;
	bool undo;
	bool own; /* the list was made for a redo: its decisions are how things are */
};

static bool sets_attributes(const struct plan_rec *r)
{
	return r->before.mode && !(r->flags & (PLAN_TIMES | PLAN_ASIDE)) &&
	       (r->flags & PLAN_XATTR || r->before.mode != r->after.mode ||
		r->before.uid != r->after.uid || r->before.gid != r->after.gid);
}

/* The host had deleted it by itself, before a redo would have: whichever list says so. */
static bool deletes_nothing(const struct plan_rec *r)
{
	return r->kind == PLAN_DELETE && !r->before.mode && !r->after.mode;
}

/* As in struct fate. */
static size_t keep_attributes(struct standing *s, const struct plan_rec *r)
{
	const size_t n = s->nattributes;

	if (!(r->flags & PLAN_FORCE && r->flags & PLAN_XATTR))
		return 0;
	if ((n & (n - 1)) == 0)
		s->attributes = xrealloc(s->attributes,
					 (n ? 2 * n : 8) * sizeof(*s->attributes));
	plan_rec_copy(&s->attributes[n], r);
	return ++s->nattributes;
}

static int read_step(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct reading *rd = arg;
	struct fate f = { .gone = rd->undo,
			  .other = deletes_nothing(r) ||
				   (rd->own && r->flags & (PLAN_FORCE | PLAN_TOUCHED)),
			  .kind = r->kind,
			  .flags = r->flags,
			  .before = r->before,
			  .after = r->after };

	/* The directory around a chosen path gets its times; of itself nothing is undone. */
	if (r->kind == PLAN_DIR && !sets_attributes(r))
		return 0;
	if (r->kind == PLAN_BASE || r->kind == PLAN_LEAVE)
		return 0;
	if (rd->own)
		f.attributes = keep_attributes(rd->s, r);
	return table_put(rd->s->steps, r->serial, &f, e);
}

static bool is_first_with_list(const struct history *hi, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (hi->v[k].plan && strcmp(hi->v[k].plan, hi->v[i].plan) == 0)
			return false;
	return true;
}

static int read_op(struct standing *s, int dir, const struct history *hi, size_t i,
		   const struct op_record *commit, struct err *e)
{
	const struct op_record *r = &hi->v[i];
	struct reading rd = { .s = s, .undo = r->kind == OP_UNDO };
	struct plan *p;
	int x;

	if (strcmp(r->plan, commit->plan) == 0) {
		s->gone = rd.undo;
		forget_steps(s);
		return 0;
	}
	rd.own = !rd.undo && is_first_with_list(hi, i);
	if (plan_open(dir, r->plan, &p, e) < 0)
		return -1;
	x = plan_each(p, false, read_step, &rd, e);
	plan_close(p);
	return x;
}

int standing_open(int dir, const struct history *hi, const struct op_record *commit,
		  struct standing **out, struct err *e)
{
	struct standing *s = xcalloc(1, sizeof(*s));

	s->dir = dir;
	forget_steps(s);
	for (size_t i = 0; i < hi->n; i++) {
		const struct op_record *r = &hi->v[i];

		/* Without a target: of a part, when it was not yet noted of which commit. */
		if (r->state != OP_DONE || (r->kind != OP_UNDO && r->kind != OP_REDO) ||
		    !r->plan || (r->target && r->target != commit->id) ||
		    r->id < commit->id)
			continue;
		if (read_op(s, dir, hi, i, commit, e) < 0) {
			standing_free(s);
			return -1;
		}
	}
	*out = s;
	return 0;
}

void standing_free(struct standing *s)
{
	if (!s)
		return;
	forget_steps(s);
	table_free(s->steps);
	free(s);
}

bool standing_is_plain(const struct standing *s)
{
	return !s->gone && !table_count(s->steps);
}

static void take_over(const struct standing *s, const struct fate *f, struct plan_rec *r)
{
	r->kind = f->kind;
	r->flags = f->flags;
	r->before = f->before;
	r->after = f->after;
	if (f->attributes) {
		const struct plan_rec *of = &s->attributes[f->attributes - 1];

		r->xbefore = of->xbefore;
		r->nxbefore = of->nxbefore;
		r->xafter = of->xafter;
		r->nxafter = of->nxafter;
	}
}

int standing_step(const struct standing *s, struct plan_rec *r, struct err *e)
{
	struct fate f;
	int met;

	if (r->kind == PLAN_DIR && !sets_attributes(r))
		return 1;
	met = table_get(s->steps, r->serial, &f, e);
	if (r->kind == PLAN_DIR) {
		/* Its times move with what it holds. */
		if (met > 0 ? f.gone : s->gone)
			r->flags = (r->flags & ~(unsigned)PLAN_XATTR) | PLAN_TIMES;
		else if (met > 0 && f.other && f.flags & PLAN_FORCE)
			take_over(s, &f, r);
		return met < 0 ? -1 : 1;
	}
	if (met <= 0)
		return met < 0 ? -1 : !s->gone;
	if (f.other)
		take_over(s, &f, r);
	return !f.gone;
}

struct telling {
	const struct standing *s;
	plan_fn *fn;
	void *arg;
};

static int tell(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct telling *t = arg;
	struct plan_rec copy = *r;
	int stands = standing_step(t->s, &copy, e);

	return stands > 0 ? t->fn(t->arg, &copy, e) : stands;
}

static int tell_commit(int dir, const struct history *hi, const struct op_record *commit,
		       plan_fn *fn, void *arg, struct err *e)
{
	struct telling t = { .fn = fn, .arg = arg };
	struct standing *s;
	struct plan *p;
	int r;

	if (standing_open(dir, hi, commit, &s, e) < 0)
		return -1;
	t.s = s;
	r = plan_open(dir, commit->plan, &p, e);
	if (r == 0) {
		r = plan_each(p, false, tell, &t, e);
		plan_close(p);
	}
	standing_free(s);
	return r;
}

int txn_each_step(struct home *h, const struct txn_record *rec, plan_fn *fn, void *arg,
		  struct err *e)
{
	AUTO_CLOSE int dir = open(rec->dir,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct history hi;
	int r = 0;

	if (dir < 0)
		return err_sys(e, errno, "%s", rec->dir);
	if (history_read(h, rec->id, &hi, e) < 0)
		return -1;
	for (size_t i = hi.n; i > 0 && r == 0; i--) {
		const struct op_record *op = &hi.v[i - 1];

		if (op->kind == OP_COMMIT && op->state == OP_DONE &&
		    op->undone == OP_STANDS && op->plan)
			r = tell_commit(dir, &hi, op, fn, arg, e);
	}
	history_free(&hi);
	return r;
}
