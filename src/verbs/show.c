/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/show.h"

#include <string.h>

#include "session/json.h"
#include "verbs/checkpoint.h"
#include "verbs/verbs.h"

#define AT(field) offsetof(struct diff_req, field)

static const struct verb_opt opts[] = {
	{ "stat", 0, OPT_FLAG, NULL, "lines added and removed per file", AT(stat) },
	{ "name-status", 0, OPT_FLAG, NULL, "letters and paths only", AT(name_status) },
	{ "no-renames", 0, OPT_FLAG, NULL, "show a rename as a deletion and an addition",
	  AT(no_renames) },
	{ "no-pager", 0, OPT_FLAG, NULL, "print straight to the terminal",
	  AT(common.no_pager) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX|N", ARG_TXN, true, false, AT(txn) },
	{ "N|PATH", ARG_WORD, false, true, AT(paths) },
	{ NULL },
};

int op_show(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct diff_req *rq = req;
	struct show_res *res = result;
	int64_t a = -1, b;

	if (!(point_range(rq->txn, &a, &b) ||
	      (rq->paths && point_range(rq->paths[0], &a, &b))) ||
	    a >= 0) {
		err_set(e, ERR_USAGE, "show: which checkpoint?");
		return err_hint(e, "stet show 3, stet show t2 3; stet log lists them");
	}
	if (op_diff(ctx, req, &res->diff, e) < 0)
		return -1;
	for (size_t i = 0; i < timeline_all(res->diff.checks)->n; i++)
		if (timeline_all(res->diff.checks)->v[i].seq == b)
			res->point = &timeline_all(res->diff.checks)->v[i];
	return 0;
}

static json_t *show_json(const void *result)
{
	const struct show_res *res = result;
	json_t *o = verb_diff.json(&res->diff);

	json_object_set_new(o, "point",
			    res->point ? point_json(res->point) : json_null());
	return o;
}

static int show_each(const void *result, verb_item_fn *emit, void *arg, struct err *e)
{
	return verb_diff.list.each(&((const struct show_res *)result)->diff, emit, arg,
				   e);
}

static void show_free(void *result)
{
	diff_free(&((struct show_res *)result)->diff);
}

const struct verb verb_show = {
	.name = "show",
	.summary = "show one checkpoint and what it changed",
	.description =
		"Shows when and why checkpoint N was made, and what had changed since the one "
		"before it. PATHs after the number limit that to what lies at or below them.\n"
		"\n"
		"TX is the number (as t3) or name of a transaction; without it, the newest one "
		"of the current directory.\n"
		"\n"
		"  stet show 4\n"
		"  stet show t3 4 --stat",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON | VERB_COLOR | VERB_PAGER | VERB_INSIDE,
	.request_size = sizeof(struct diff_req),
	.result_size = sizeof(struct show_res),
	.run = op_show,
	.json = show_json,
	.list = { "changes", show_each },
	.free = show_free,
};
