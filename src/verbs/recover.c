/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/recover.h"

#include "base/buf.h"
#include "commit/commit.h"
#include "commit/recover.h"
#include "commit/verify.h"
#include "session/json.h"

int op_recover(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	struct recover_res *res = result;
	struct home *h;

	(void)req;
	if (op_ctx_open(ctx, &h, e) < 0)
		return -1;
	return txn_recover(h, &res->operations, e);
}

static json_t *recover_json(const void *res)
{
	json_t *o = json_result();

	json_object_set_new(o, "operations",
			    json_integer(((const struct recover_res *)res)->operations));
	return o;
}

const struct verb verb_recover = {
	.name = "recover",
	.summary = "finish or reverse what a crash interrupted",
	.description =
		"Goes on with every commit, undo and redo that did not end because stet was "
		"killed or the machine went down: forward where that is possible, back where "
		"the host changed meanwhile. Every verb does this first by itself.",
	.flags = VERB_JSON | VERB_QUIET,
	.request_size = sizeof(struct recover_req),
	.result_size = sizeof(struct recover_res),
	.run = op_recover,
	.json = recover_json,
};

static void note(void *arg, const char *what)
{
	struct check_res *res = arg;

	strv_push(&res->wrong, xstrdup(what));
}

static void check_free(void *res)
{
	strv_free(((struct check_res *)res)->wrong);
}

int op_check(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	struct check_res *res = result;
	struct home *h;

	(void)req;
	if (op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (txn_verify(h, note, res, &res->transactions, e) < 0) {
		check_free(res);
		return -1;
	}
	return 0;
}

static json_t *check_json(const void *result)
{
	const struct check_res *res = result;
	json_t *o = json_result(), *a = json_array();
	size_t i;

	for (i = 0; res->wrong && res->wrong[i]; i++) {
		json_t *j = json_object();

		json_set_str(j, "what", res->wrong[i]);
		json_array_append_new(a, j);
	}
	json_object_set_new(o, "transactions", json_integer(res->transactions));
	json_object_set_new(o, "wrong", a);
	return o;
}

static int check_status(const void *req, const void *res)
{
	(void)req;
	return ((const struct check_res *)res)->wrong ? ERR_CORRUPT : 0;
}

const struct verb verb_check = {
	.name = "check",
	.summary = "verify that everything stet keeps is there and sound",
	.description =
		"Compares the journal with the stores and the host: every transaction's data, "
		"every list of changes, everything that an undo would need. Changes nothing. "
		"The exit status is 7 if something is wrong.",
	.flags = VERB_JSON | VERB_QUIET,
	.request_size = sizeof(struct check_req),
	.result_size = sizeof(struct check_res),
	.run = op_check,
	.json = check_json,
	.status = check_status,
	.free = check_free,
};
