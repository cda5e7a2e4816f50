/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "commit/blame.h"
#include "commit/draft.h"
#include "commit/operate.h"
#include "journal/ckpt_rows.h"
#include "journal/op_rows.h"
#include "layer/unopaque.h"
#include "plan/stage.h"
#include "txn/check.h"
#include "txn/marks.h"
#include "txn/move.h"
#include "txn/parts.h"
#include "txn/state.h"

void commit_result_free(struct commit_result *r)
{
	path_notes_free(&r->conflicts);
	path_notes_free(&r->risks);
	path_notes_free(&r->denied);
}

int operate_plan_name(char name[32], struct err *e)
{
	uint64_t salt;

	if (FAULT_AT("commit.random") ||
	    getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return err_sys(e, errno, "no random numbers");
	snprintf(name, 32, "plan-%016llx", (unsigned long long)salt);
	return 0;
}

/* Words for what the conflicts have in common. */
static const char *conflict_words(const struct commit_result *res, char *out, size_t size,
				  long long id)
{
	uint64_t n = res->conflicts.n + res->conflicts.more;

	if (res->hidden == n)
		snprintf(out, size, " that t%lld could not see %s there on the host", id,
			 n == 1 ? "is" : "are");
	else
		snprintf(out, size, " %s changed on the host since t%lld began%s",
			 n == 1 ? "has" : "have", id,
			 res->hidden ? ", or could not be seen" : "");
	return out;
}

static bool is_closed(const struct path_note *n)
{
	return strcmp(n->what, TXN_WAS_CLOSED) == 0;
}

/* With the first of them, which may stand for many below it. */
static int refuse_closed(long long id, const struct commit_result *res, struct err *e)
{
	const struct path_note *n = res->denied.v;

	while (n < res->denied.v + res->denied.n - 1 && !is_closed(n))
		n++;
	if (res->closed > 1)
		err_set(e, ERR_DENIED,
			"%llu paths (%s, ...) were read-only in t%lld; nothing was committed",
			(unsigned long long)res->closed, n->path, id);
	else
		err_set(e, ERR_DENIED, "%s was read-only in t%lld; nothing was committed",
			n->path, id);
	return err_hint(
		e,
		"stet commit t%lld --theirs PATH leaves it as the host has it; look "
		"with stet diff t%lld",
		id, id);
}

static int refuse(const struct commit_wish *w, const struct txn *t,
		  const struct commit_result *res, struct err *e)
{
	long long id = (long long)t->rec.id;
	char words[96];

	if (res->conflicts.n) {
		err_set(e, ERR_CONFLICT, "%llu %s%s; nothing was committed",
			(unsigned long long)(res->conflicts.n + res->conflicts.more),
			res->conflicts.n == 1 ? "path" : "paths",
			conflict_words(res, words, sizeof(words), id));
		return err_hint(
			e,
			"decide with stet commit t%lld --ours PATH%s; look with stet diff "
			"t%lld --conflicts",
			id,
			w->merge || !res->mergeable ? " or --theirs PATH"
						    : ", --theirs PATH or --merge",
			id);
	}
	if (res->closed && !w->dry_run)
		return refuse_closed(id, res, e);
	if (res->denied.n && !w->dry_run) {
		err_set(e, ERR_DENIED, "the policy denies %llu %s; nothing was committed",
			(unsigned long long)(res->denied.n + res->denied.more),
			res->denied.n == 1 ? "change" : "changes");
		return err_hint(e,
				"stet diff t%lld; then choose: stet commit t%lld PATH...",
				id, id);
	}
	if (res->risks.n && !w->accept_risky && !w->dry_run) {
		err_set(e, ERR_DENIED, "%llu %s a look first; nothing was committed",
			(unsigned long long)(res->risks.n + res->risks.more),
			res->risks.n == 1 ? "change deserves" : "changes deserve");
		return err_hint(e,
				"stet diff t%lld, then stet commit t%lld --accept-risky",
				id, id);
	}
	return 0;
}

static int stage_step(void *arg, const struct plan_rec *r, struct err *e)
{
	struct operation *o = arg;

	return apply_stage(o->apply, r, &o->objects, e);
}

static int begin_op(struct home *h, struct txn *t, const struct commit_wish *w,
		    const char *plan, struct commit_result *res, struct operation *o,
		    struct err *e)
{
	o->op = (struct op_record){ .txn = t->rec.id,
				    .kind = OP_COMMIT,
				    .state = OP_APPLYING,
				    .plan = xstrdup(plan),
				    .changes = res->changes,
				    .before = t->rec.state,
				    .after = res->left ? TXN_FROZEN : TXN_COMMITTED,
				    .begun_ns = o->begun_ns,
				    .message = w->message ? xstrdup(w->message) : NULL };
	return txn_move(h, t,
			&(struct txn_step){ TXN_COMMITTING, JOURNAL_SYNC, .op = &o->op },
			e);
}

static int unsettle(const struct txn *t, struct err *e)
{
	int r = disk_unsettle(&t->rec);

	return r < 0 ? err_sys(e, r, "cannot write to %s", t->rec.dir) : 0;
}

/* Nothing was promised by it. Returns -1. */
static int drop_plan(const struct operation *o, const char *plan)
{
	if (!FAULT_AT("commit.unlink"))
		unlinkat(o->dir, plan, 0);
	return -1;
}

/* From a finished plan to a finished commit. */
static int carry_out(struct home *h, struct txn *t, const struct commit_wish *w,
		     const char *plan, struct commit_result *res, struct operation *o,
		     struct err *e)
{
	/* First, since the list has just been synced: reading it is a write already. */
	if (journal_settle(h->journal, e) < 0)
		return drop_plan(o, plan);
	if (plan_open(o->dir, plan, &o->plan, e) < 0)
		return -1;
	o->progress = w->progress;
	o->progress_arg = w->progress_arg;
	if (unsettle(t, e) < 0 || plan_each(o->plan, false, stage_step, o, e) < 0 ||
	    operate_sync_staged(o, e) < 0 || operate_rights(o, t, e) < 0)
		return drop_plan(o, plan);
	/* The list stays even if this fails: the record may be found whole after a crash. */
	if (begin_op(h, t, w, plan, res, o, e) < 0)
		return -1;
	if (operate(h, t, o, e) < 0) {
		if (e->kind == ERR_CONFLICT)
			operate_conflict(t, o, res, "committed", e);
		return -1;
	}
	res->op = o->op.id;
	return 0;
}

/*
 * A process that was taking the transaction to another checkpoint may have died just now:
 * recovery comes first.
 */
static int check_whole(struct home *h, const struct txn *t, struct err *e)
{
	int64_t id, back_to;

	if (journal_changing_next(h->journal, t->rec.id - 1, &id, &back_to, e) < 0)
		return -1;
	if (id != t->rec.id)
		return 0;
	err_set(e, ERR_STATE, "t%lld was being taken to another checkpoint",
		(long long)t->rec.id);
	return err_hint(e, "stet recover takes that back; then try again");
}

/*
 * Opaque marks are spelled out: the rest of a directory must still be right when a part of it
 * is committed.
 */
static int unfold(struct operation *o, struct err *e)
{
	for (size_t i = 0; i < o->nlayers; i++) {
		int r = o->layers[i].away ? 0 : unopaque_layer(&o->layers[i]);

		if (r < 0)
			return err_sys(e, r, "cannot take %s apart", o->layers[i].upper);
	}
	return 0;
}

/*
 * Before the layers are made ready for a part of them, which makes final what was undone: would it
 * be refused? Only asked if there is something that could still be redone.
 */
static int rehearse(struct home *h, struct txn *t, const struct commit_wish *w,
		    const char *name, struct operation *o, struct commit_result *res,
		    struct err *e)
{
	struct commit_wish dry = *w;
	bool undone;
	int r;

	if (journal_op_undone(h->journal, t->rec.id, &undone, e) < 0)
		return -1;
	if (!undone)
		return 0;
	dry.dry_run = true;
	r = draft_make(h, t, &dry, o->apply, o->layers, o->nlayers, o->dir, name, res, e);
	if (r == 0)
		r = refuse(w, t, res, e);
	if (r == 0) {
		commit_result_free(res);
		*res = (struct commit_result){ 0 };
	}
	return r;
}

static int get_ready(struct home *h, struct txn *t, const struct commit_wish *w,
		     const char *name, struct operation *o, struct commit_result *res,
		     struct err *e)
{
	if (rehearse(h, t, w, name, o, res, e) < 0)
		return -1;
	o->settled = false;
	return unsettle(t, e) < 0 || journal_op_stale(h->journal, t->rec.id, e) < 0
		       ? -1
		       : unfold(o, e);
}

int txn_commit(struct home *h, struct txn *t, const struct commit_wish *w,
	       struct commit_result *res, struct err *e)
{
	AUTO_CLOSE int guard = -1;
	struct operation o;
	char name[32];
	int r;
	TXN_CHECKED(h, t);

	*res = (struct commit_result){ 0 };
	if (txn_pending(h, t, e) < 0 || check_whole(h, t, e) < 0 ||
	    operate_plan_name(name, e) < 0)
		return -1;
	guard = operate_guard(h, true, e);
	if (guard < 0 || operate_open(t, true, &o, e) < 0)
		return -1;
	o.begun_ns = operate_begun(t);
	o.own = true;
	o.settled = disk_settled(&t->rec);
	r = operate_mounts(&o, e);
	if (r == 0 && w->paths && !w->dry_run)
		r = get_ready(h, t, w, name, &o, res, e);
	if (r == 0)
		r = draft_make(h, t, w, o.apply, o.layers, o.nlayers, o.dir, name, res,
			       e);
	if (r == 0)
		r = refuse(w, t, res, e);
	blame_notes(h, t->rec.id, t->rec.begin_ns, &res->conflicts);
	if (r < 0 || w->dry_run || res->conflicts.n || !res->changes)
		unlinkat(o.dir, name, 0);
	else
		r = carry_out(h, t, w, name, res, &o, e);
	operate_close(&o);
	return r;
}
