/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "change/plan.h"
#include "change/risk.h"
#include "ops/json.h"
#include "sys/fs.h"
#include "txn/budget.h"

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

const char *change_item_from(const struct change_list *l, const struct change_item *it)
{
	return it->renamed_from == SIZE_MAX ? NULL : l->v[it->renamed_from].c.path;
}

/* Before renames are looked for: they refer to their sources by index. */
void op_leave_out_times(struct change_list *l)
{
	size_t i, k = 0;

	for (i = 0; i < l->n; i++) {
		struct change_item *it = &l->v[i];
		struct change_item swap;

		if (!change_counts(&it->c))
			continue;
		if (k != i) {
			swap = l->v[k];
			l->v[k] = *it;
			*it = swap;
		}
		k++;
	}
	if (k < l->n) {
		/* The rest, moved to the end, is freed the way a list is. */
		struct change_list rest = { 0 };

		rest.n = rest.cap = l->n - k;
		rest.v = malloc(rest.n * sizeof(*rest.v));
		if (!rest.v)
			abort();
		memcpy(rest.v, l->v + k, rest.n * sizeof(*rest.v));
		change_list_free(&rest);
		l->n = k;
	}
}

int op_collect(const struct txn_record *rec, const struct change_layer *layers, size_t n,
	       const char *const *paths, bool renames, struct change_list *l,
	       struct err *e)
{
	int r;

	if (rec->state == TXN_PRUNED || rec->state == TXN_COMMITTED ||
	    rec->state == TXN_COMMITTING || rec->state == TXN_UNDOING)
		return 0;
	r = paths ? change_collect_paths(layers, n, paths, l, e)
		  : change_collect(layers, n, l, e);
	if (r < 0)
		return r;
	op_leave_out_times(l);
	if (renames)
		r = change_find_renames(layers, l, e);
	if (r < 0)
		change_list_free(l);
	return r;
}

static void count(const struct change_list *l, struct change_totals *t)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct change *c = &l->v[i].c;

		if (c->kind == CHANGE_ADD)
			t->added++;
		else if (c->kind == CHANGE_DELETE)
			t->deleted++;
		else
			t->modified++;
		if (c->kind != CHANGE_DELETE && S_ISREG(c->after.st_mode))
			t->bytes += (uint64_t)c->after.st_size;
	}
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

static void find_risks(struct status_res *res)
{
	AUTO_BUF struct buf target = BUF_INIT;
	size_t i;

	for (i = 0; i < res->list.n; i++) {
		const struct change *c = &res->list.v[i].c;
		const char *why;

		buf_reset(&target);
		if (S_ISLNK(c->after.st_mode))
			read_target(&res->layers[c->layer], c, &target);
		why = risk_of(c, target.len ? buf_str(&target) : NULL,
			      res->rec.workspace);
		if (why)
			path_notes_add(&res->risks, c->path, why);
	}
}

/* What a commit did, from its list of steps: things that moved as a whole are one change. */
static int add_step(void *arg, const struct plan_rec *r, struct err *e)
{
	struct status_res *res = arg;
	struct change_list *l = &res->list;
	struct change_item it = { .renamed_from = SIZE_MAX };
	const char *host;

	(void)e;
	if (r->layer >= res->nlayers || r->kind == PLAN_BASE ||
	    (r->kind == PLAN_DIR && r->before.mode == r->after.mode &&
	     r->before.uid == r->after.uid && r->before.gid == r->after.gid))
		return 0;
	host = res->layers[r->layer].host;
	it.c.layer = r->layer;
	it.c.before.st_mode = r->before.mode;
	it.c.after.st_mode = r->kind == PLAN_DELETE ? 0 : r->after.mode;
	it.c.before.st_size = (off_t)r->before.size;
	it.c.after.st_size = r->kind == PLAN_DELETE ? 0 : (off_t)r->after.size;
	it.c.kind = r->kind == PLAN_DELETE			? CHANGE_DELETE
		    : !r->before.mode				? CHANGE_ADD
		    : (r->before.mode ^ r->after.mode) & S_IFMT ? CHANGE_TYPE
								: CHANGE_MODIFY;
	if (it.c.kind == CHANGE_MODIFY)
		it.c.what = r->kind == PLAN_REPLACE	      ? CHANGE_CONTENT
			    : r->before.mode != r->after.mode ? CHANGE_MODE
							      : CHANGE_XATTR;
	it.c.path = xasprintf("%s/%s", strcmp(host, "/") ? host : "", r->rel);
	it.c.rel = it.c.path + strlen(it.c.path) - strlen(r->rel);
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->v = xrealloc(l->v, l->cap * sizeof(*l->v));
	}
	l->v[l->n++] = it;
	return 0;
}

static int add_commit(void *arg, struct op_record *op, struct err *e)
{
	struct status_res *res = arg;
	AUTO_CLOSE int dir = -1;
	struct plan *p;
	int r;

	if (op->kind != OP_COMMIT || op->state != OP_DONE || op->undone || !op->plan)
		return 0;
	dir = open(res->rec.dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, errno, "%s", res->rec.dir);
	if (plan_open(dir, op->plan, &p, e) < 0)
		return -1;
	r = plan_each(p, false, add_step, res, e);
	plan_close(p);
	return r;
}

static int look(struct home *h, struct status_res *res, struct err *e)
{
	int r;

	res->layers = txn_layers(&res->rec, &res->nlayers);
	if (res->rec.state == TXN_COMMITTED)
		r = journal_op_each(h->journal, res->rec.id, add_commit, res, e);
	else
		r = op_collect(&res->rec, res->layers, res->nlayers, NULL, true,
			       &res->list, e);
	if (r < 0)
		return -1;
	count(&res->list, &res->totals);
	if (txn_look(&res->rec) <= TXN_PENDING)
		find_risks(res);
	res->durable = txn_on_disk(&res->rec);
	res->held = txn_held(h);
	return 0;
}

static void status_free(void *result)
{
	struct status_res *res = result;

	change_list_free(&res->list);
	path_notes_free(&res->risks);
	free(res->layers);
	txn_record_free(&res->rec);
}

int op_status(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct status_req *rq = req;
	struct status_res *res = result;
	struct txn t = { .lock = -1 };
	struct home *h;

	if (op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (op_ctx_txn(ctx, rq->txn, &t, e) < 0) {
		res->none = rq->bare && e->kind == ERR_USAGE;
		return res->none ? 0 : -1;
	}
	res->all = rq->all;
	res->rec = t.rec;
	memset(&t.rec, 0, sizeof(t.rec));
	txn_close(&t);
	if (look(h, res, e) < 0) {
		status_free(res);
		return -1;
	}
	return 0;
}

static json_t *status_json(const void *result)
{
	const struct status_res *res = result;
	json_t *o = json_result(), *changes = json_array();
	size_t i;

	if (res->none) {
		json_object_set_new(o, "txn", json_null());
		json_decref(changes);
		return o;
	}
	json_object_set_new(o, "txn", json_txn(&res->rec));
	json_object_set_new(o, "totals", json_totals(&res->totals));
	for (i = 0; i < res->list.n; i++) {
		const struct change_item *it = &res->list.v[i];

		if (!it->renamed_away)
			json_array_append_new(
				changes,
				json_change(&it->c, change_item_from(&res->list, it)));
	}
	json_object_set_new(o, "changes", changes);
	json_set_notes(o, "risks", &res->risks);
	json_object_set_new(o, "on_disk", json_boolean(res->durable));
	json_object_set_new(o, "history_bytes", json_integer((json_int_t)res->held));
	return o;
}

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
		"the steps of the commit are shown.\n"
		"\n"
		"A transaction that is not on the disk yet could be lost in a power cut; that "
		"takes a moment after its end. History is what committed and rolled-back "
		"transactions keep for stet undo; stet forget trims it.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest one of the "
		"current directory. Typing stet alone does the same.\n"
		"\n"
		"  stet status t3 --json",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON | VERB_COLOR,
	.request_size = sizeof(struct status_req),
	.result_size = sizeof(struct status_res),
	.run = op_status,
	.json = status_json,
	.free = status_free,
};
