/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/status.h"

#include <stdlib.h>
#include <string.h>

#include "ops/json.h"

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
static void leave_out_times(struct change_list *l)
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

	if (rec->state == TXN_PRUNED)
		return 0;
	r = paths ? change_collect_paths(layers, n, paths, l, e)
		  : change_collect(layers, n, l, e);
	if (r < 0)
		return r;
	leave_out_times(l);
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

int op_status(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct status_req *rq = req;
	struct status_res *res = result;
	struct txn t = { .lock = -1 };

	if (op_ctx_txn(ctx, rq->txn, &t, e) < 0) {
		res->none = rq->bare && e->kind == ERR_USAGE;
		return res->none ? 0 : -1;
	}
	res->all = rq->all;
	res->rec = t.rec;
	memset(&t.rec, 0, sizeof(t.rec));
	txn_close(&t);
	res->layers = txn_layers(&res->rec, &res->nlayers);
	if (op_collect(&res->rec, res->layers, res->nlayers, NULL, true, &res->list, e) <
	    0) {
		free(res->layers);
		txn_record_free(&res->rec);
		return -1;
	}
	count(&res->list, &res->totals);
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
	return o;
}

static void status_free(void *result)
{
	struct status_res *res = result;

	change_list_free(&res->list);
	free(res->layers);
	txn_record_free(&res->rec);
}

const struct verb verb_status = {
	.name = "status",
	.summary = "show what a transaction holds",
	.description =
		"Shows a transaction: its command and how that ended, what it changed, and what "
		"of it cannot be undone. Each change has a letter: A added, M changed, D "
		"deleted, T type changed, R renamed, X mode changed. Paths are relative to the "
		"workspace if they lie in it. A directory that was added or deleted as a whole "
		"is one line; --all lists what is in it.\n"
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
