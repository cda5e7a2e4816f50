/* SPDX-License-Identifier: Apache-2.0 */
#include "review/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/call.h"
#include "call/json.h"
#include "commit/history.h"
#include "diff/list.h"
#include "diff/risk.h"
#include "diff/walk.h"
#include "plan/plan.h"
#include "session/diffrule.h"
#include "session/policy_files.h"
#include "sys/fs.h"
#include "txn/budget.h"
#include "txn/marks.h"

#define AT(field) offsetof(struct status_req, field)

static const struct verb_opt opts[] = {
	{ "all", 'a', OPT_FLAG, NULL,
	  "list what lies below new and deleted directories, too", AT(all) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ NULL },
};

bool op_has_changes(const struct txn_record *rec)
{
	return rec->state != TXN_PRUNED && rec->state != TXN_COMMITTED &&
	       rec->state != TXN_COMMITTING && rec->state != TXN_UNDOING;
}

static void read_target(const struct change_layer *l, const struct change *c,
			struct buf *out)
{
	AUTO_CLOSE int root = open(l->upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *base;
	AUTO_CLOSE int dir = root < 0 ? -1 : fs_open_parent(root, c->rel, &base);

	if (dir < 0 || fs_readlink(dir, base, out) < 0)
		buf_reset(out);
}

/* Adds one change to the totals, and to the risks if it deserves a look. */
static int take(void *arg, const struct change *c, struct err *e)
{
	struct status_res *res = arg;
	AUTO_BUF struct buf target = BUF_INIT;
	const char *why;
	bool deny;

	(void)e;
	change_totals_add(&res->totals, c);
	if (res->txn.look > TXN_PENDING)
		return 0;
	if (S_ISLNK(c->after.st_mode))
		read_target(&res->layers[c->layer], c, &target);
	why = risk_of(c, target.len ? buf_str(&target) : NULL, res->txn.rec.workspace);
	if (!why)
		why = diff_judge(res->rules, c, target.len ? buf_str(&target) : NULL,
				 &deny);
	if (why)
		path_notes_add(&res->risks, c->path, why);
	return 0;
}

/* The changes of a commit, from its steps: a directory that was moved whole is one change. */
struct steps {
	const struct status_res *res;
	change_fn *fn;
	void *arg;
};

static int pass_step(void *arg, const struct plan_rec *r, struct err *e)
{
	const struct steps *s = arg;
	AUTO_FREE char *path = NULL;
	struct change c = { .layer = r->layer };
	const char *host;

	if (r->layer >= s->res->nlayers || r->kind == PLAN_BASE ||
	    (r->kind == PLAN_DIR && r->before.mode == r->after.mode &&
	     r->before.uid == r->after.uid && r->before.gid == r->after.gid))
		return 0;
	host = s->res->layers[r->layer].host;
	c.before.st_mode = r->before.mode;
	c.after.st_mode = r->kind == PLAN_DELETE ? 0 : r->after.mode;
	c.before.st_size = (off_t)r->before.size;
	c.after.st_size = r->kind == PLAN_DELETE ? 0 : (off_t)r->after.size;
	c.kind = r->kind == PLAN_DELETE			     ? CHANGE_DELETE
		 : !r->before.mode			     ? CHANGE_ADD
		 : (r->before.mode ^ r->after.mode) & S_IFMT ? CHANGE_TYPE
							     : CHANGE_MODIFY;
	if (c.kind == CHANGE_MODIFY)
		c.what = r->kind == PLAN_REPLACE	   ? CHANGE_CONTENT
			 : r->before.mode != r->after.mode ? CHANGE_MODE
							   : CHANGE_XATTR;
	path = xasprintf("%s/%s", strcmp(host, "/") ? host : "", r->rel);
	c.path = path;
	c.rel = path + strlen(path) - strlen(r->rel);
	return s->fn(s->arg, &c, e);
}

static int source(const void *from, change_fn *fn, void *arg, struct err *e)
{
	const struct status_res *res = from;
	struct steps s = { res, fn, arg };

	if (res->txn.rec.state == TXN_COMMITTED)
		return txn_each_step(res->h, &res->txn.rec, pass_step, &s, e);
	return op_has_changes(&res->txn.rec)
		       ? change_walk(res->layers, res->nlayers, fn, arg, e)
		       : 0;
}

static int look(struct home *h, struct status_res *res, struct err *e)
{
	res->h = h;
	if (txn_sides_open(&res->txn.rec, &res->sides, e) < 0)
		return -1;
	res->layers = res->sides.v;
	res->nlayers = res->sides.n;
	if (changes_find(&res->changes, source, res, take, res, e) < 0)
		return -1;
	if (res->txn.rec.state != TXN_COMMITTED &&
	    changes_renames(&res->changes, res->layers, e) < 0)
		return -1;
	res->durable = txn_on_disk(&res->txn.rec);
	return 0;
}

static void status_free(void *result)
{
	struct status_res *res = result;

	changes_free(&res->changes);
	path_notes_free(&res->risks);
	txn_sides_close(&res->sides);
	txn_facts_free(&res->txn);
}

static int op_status(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct status_req *rq = req;
	struct status_res *res = result;
	struct op_policy policy = { NULL };
	struct diff_rules rules = { NULL };
	struct err ignored;
	int r;

	if (call_find(c, rq->txn, e) < 0) {
		res->none = rq->bare && e->kind == ERR_USAGE;
		return res->none ? 0 : -1;
	}
	res->all = rq->all;
	txn_facts_take(&res->txn, &c->t);
	/* History is the user's, not the transaction's. */
	res->held = c->ctx->only ? 0 : txn_held(c->h);
	/* A policy that does not load is a matter for those who run and commit. */
	if (op_policy_load(c->ctx, res->txn.rec.workspace, &policy, &ignored) == 0)
		diff_rules_open(&rules, c->ctx, policy.p, res->txn.rec.workspace, false);
	res->rules = &rules;
	r = look(c->h, res, e);
	res->rules = NULL;
	diff_rules_close(&rules);
	op_policy_free(&policy);
	if (r < 0)
		status_free(res);
	return r;
}

struct lines {
	const struct status_res *res;
	verb_item_fn *emit;
	void *arg;
};

static int json_line(void *arg, const struct change_item *it, struct err *e)
{
	const struct lines *l = arg;
	const struct change *from = changes_from(&l->res->changes, it);

	return it->renamed_away
		       ? 0
		       : l->emit(l->arg, json_change(&it->c, from ? from->path : NULL),
				 e);
}

static int status_each(const void *result, verb_item_fn *emit, void *arg, struct err *e)
{
	const struct status_res *res = result;
	struct lines l = { res, emit, arg };

	return res->none ? 0 : changes_each(&res->changes, json_line, &l, e);
}

static bool is_there(const void *at)
{
	return !((const struct status_res *)at)->none;
}

static json_t *txn_or_null(const void *at)
{
	const struct status_res *res = at;

	return res->none ? json_null() : schema_write(txn_fields, &res->txn);
}

#define RES(field) offsetof(struct status_res, field)

static const struct field status_fields[] = {
	{ "txn", FIELD_OBJECT, 0, "the transaction; null if stet alone found none",
	  FIELD_CAN_NULL, txn_fields, .make = txn_or_null },
	{ "totals", FIELD_OBJECT, RES(totals), "of the changes", .fields = totals_fields,
	  .present = is_there },
	{ "risks", FIELD_NOTES, RES(risks), "changes that deserve a look" },
	{ "on_disk", FIELD_BOOL, RES(durable), "a power cut would not lose it",
	  .present = is_there },
	{ "history_bytes", FIELD_UINT64, RES(held),
	  "what decided transactions hold, in all", .present = is_there },
	{ "changes", FIELD_ITEMS, 0, "one by one", .fields = change_fields },
	{ NULL },
};

const struct verb verb_status = {
	.name = "status",
	.summary = "show what a transaction holds",
	.description =
		"Shows a transaction: its command and how that ended, what it changed, what of "
		"that deserves a look before a commit, and what cannot be undone. Each change has "
		"a letter: A added, M changed, D deleted, T type changed, R renamed, X mode "
		"changed. Paths are relative to the workspace if they lie in it. A directory "
		"that was added or deleted as a whole "
		"is one line; --all lists what is in it. Of a transaction that was committed, "
		"the steps of the commit are shown. Among more than 50,000 changes no renames are "
		"looked for.\n"
		"\n"
		"A transaction that is not on the disk yet could be lost in a power cut; that "
		"takes a moment after its end. History is what committed and rolled-back "
		"transactions keep for stet undo; stet forget trims it.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest open one of the "
		"current directory. Typing stet alone does the same.\n"
		"\n"
		"  stet status t3 --json",
	.opts = opts,
	.args = args,
	.request_size = sizeof(struct status_req),
	.home = HOME_LOOK,
	.target = TARGET_BODY,
	.inside = INSIDE_ASKS,
	.flags = VERB_JSON | VERB_COLOR | VERB_TXN_FIRST,
	.run = op_status,
	.result_size = sizeof(struct status_res),
	.result = status_fields,
	.list = { "changes", status_each },
	.free = status_free,
};
