/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "journal/txn_rows.h"
#include "session/json.h"

#define AT(field) offsetof(struct list_req, field)

static const struct verb_opt opts[] = {
	{ "all", 'a', OPT_FLAG, NULL, "show pruned ones, too", AT(all) },
	{ "ids", 0, OPT_FLAG, NULL, "print ids and names only, one a line", AT(ids) },
	{ NULL },
};

static int gather(void *arg, struct txn_record *r, struct err *e)
{
	struct list_res *res = arg;

	(void)e;
	if (res->n == res->cap) {
		res->cap = res->cap ? 2 * res->cap : 16;
		res->v = xrealloc(res->v, res->cap * sizeof(*res->v));
	}
	/* Moved, not copied: an empty record is left for the caller to free. */
	res->v[res->n++] = *r;
	memset(r, 0, sizeof(*r));
	return 0;
}

static void list_free(void *result)
{
	struct list_res *res = result;
	size_t i;

	for (i = 0; i < res->n; i++)
		txn_record_free(&res->v[i]);
	free(res->v);
}

int op_list(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct list_req *rq = req;
	struct list_res *res = result;
	struct home *h;

	res->ids = rq->ids;
	if (op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (journal_txn_each(h->journal, rq->all ? JOURNAL_ALL : JOURNAL_KEPT, gather,
			     res, e) < 0) {
		list_free(res);
		return -1;
	}
	return 0;
}

static json_t *list_json(const void *result)
{
	const struct list_res *res = result;
	json_t *o = json_result(), *a = json_array();
	size_t i;

	for (i = 0; i < res->n; i++)
		json_array_append_new(a, json_txn(&res->v[i]));
	json_object_set_new(o, "transactions", a);
	return o;
}

const struct verb verb_list = {
	.name = "list",
	.summary = "list the transactions",
	.description =
		"Lists your transactions, newest first, whatever directory they belong to. The "
		"state is running, interrupted (whoever ran it was killed), pending (it ended, "
		"a decision is due), committed, rolled back, unfinished (a commit or undo was "
		"interrupted; the next stet command goes on with it), or pruned.",
	.opts = opts,
	.flags = VERB_JSON | VERB_COLOR,
	.request_size = sizeof(struct list_req),
	.result_size = sizeof(struct list_res),
	.run = op_list,
	.json = list_json,
	.free = list_free,
};
