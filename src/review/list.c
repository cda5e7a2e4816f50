/* SPDX-License-Identifier: Apache-2.0 */
#include "review/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "call/call.h"
#include "journal/txn_rows.h"

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
	res->v[res->n] = (struct txn_facts){ .look = TXN_RUNNING };
	/* Moved, not copied: an empty record is left for the caller to free. */
	res->v[res->n++].rec = *r;
	memset(r, 0, sizeof(*r));
	return 0;
}

static void list_free(void *result)
{
	struct list_res *res = result;
	size_t i;

	for (i = 0; i < res->n; i++)
		txn_facts_free(&res->v[i]);
	free(res->v);
}

static int op_list(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct list_req *rq = req;
	struct list_res *res = result;

	res->ids = rq->ids;
	if (journal_txn_each(c->h->journal, rq->all ? JOURNAL_ALL : JOURNAL_KEPT, gather,
			     res, e) < 0) {
		list_free(res);
		return -1;
	}
	for (size_t i = 0; i < res->n; i++)
		txn_facts_look(&res->v[i]);
	return 0;
}

static const struct field list_fields[] = {
	{ "transactions", FIELD_LIST, offsetof(struct list_res, v), "newest first",
	  .fields = txn_fields, .count = offsetof(struct list_res, n),
	  .stride = sizeof(struct txn_facts) },
	{ NULL },
};

const struct verb verb_list = {
	.name = "list",
	.summary = "list the transactions",
	.description =
		"Lists your transactions, newest first, whatever directory they belong to. The "
		"state is running, interrupted (whoever ran it was killed), pending (it ended, "
		"a decision is due), committed, rolled back, unfinished (a commit or undo was "
		"interrupted; the next stet command goes on with it), or pruned.",
	.opts = opts,
	.request_size = sizeof(struct list_req),
	.home = HOME_LOOK,
	.flags = VERB_JSON | VERB_COLOR,
	.run = op_list,
	.result_size = sizeof(struct list_res),
	.result = list_fields,
	.free = list_free,
};
