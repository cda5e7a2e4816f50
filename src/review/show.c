/* SPDX-License-Identifier: Apache-2.0 */
#include "review/show.h"

#include <string.h>

#include "call/call.h"
#include "review/checkpoint.h"

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

static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct diff_req *rq = req;
	int64_t a = -1, b;

	(void)ctx;
	if ((point_range(rq->txn, &a, &b) ||
	     (rq->paths && point_range(rq->paths[0], &a, &b))) &&
	    a < 0)
		return 0;
	err_set(e, ERR_USAGE, "show: which checkpoint?");
	return err_hint(e, "stet show 3, stet show t2 3; stet log lists them");
}

static int op_show(struct verb_call *c, const void *req, void *result, struct err *e)
{
	struct show_res *res = result;
	const struct ckpt_records *all;

	if (diff_make(c, req, &res->diff, e) < 0)
		return -1;
	all = timeline_all(res->diff.checks);
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].seq == res->diff.to)
			res->point = &all->v[i];
	return 0;
}

static json_t *point(const void *at)
{
	const struct show_res *res = at;

	return res->point ? schema_write(point_fields, res->point) : json_null();
}

static const struct field show_fields[] = {
	{ "", FIELD_OBJECT, offsetof(struct show_res, diff), "", FIELD_FLAT,
	  diff_fields },
	{ "point", FIELD_OBJECT, 0, "the checkpoint; null: the beginning", FIELD_CAN_NULL,
	  point_fields, .make = point },
	{ NULL },
};

static int show_each(const void *result, verb_item_fn *emit, void *arg, struct err *e)
{
	return diff_each(&((const struct show_res *)result)->diff, emit, arg, e);
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
	.check = check,
	.request_size = sizeof(struct diff_req),
	.home = HOME_LOOK,
	.target = TARGET_BODY,
	.states = &states_with_checkpoints,
	.inside = INSIDE_ASKS,
	.flags = VERB_JSON | VERB_COLOR | VERB_PAGER | VERB_TXN_FIRST,
	.run = op_show,
	.result_size = sizeof(struct show_res),
	.result = show_fields,
	.list = { "changes", show_each },
	.free = show_free,
};
