/* SPDX-License-Identifier: Apache-2.0 */
#include "review/recover.h"

#include "base/buf.h"
#include "call/call.h"
#include "call/json.h"
#include "commit/commit.h"
#include "commit/recover.h"
#include "commit/verify.h"

static int op_recover(struct verb_call *c, const void *req, void *result, struct err *e)
{
	(void)req;
	return txn_recover(c->h, &((struct recover_res *)result)->operations, e);
}

static const struct field recover_fields[] = {
	{ "operations", FIELD_UNSIGNED, offsetof(struct recover_res, operations),
	  "that were finished or reversed" },
	{ NULL },
};

const struct verb verb_recover = {
	.name = "recover",
	.summary = "finish or reverse what a crash interrupted",
	.description =
		"Goes on with every commit, undo and redo that did not end because stet was "
		"killed or the machine went down: forward where that is possible, back where "
		"the host changed meanwhile. Every verb does this first by itself.",
	.request_size = sizeof(struct recover_req),
	.home = HOME_OPEN,
	.effect = EFFECT_HOST,
	.flags = VERB_JSON | VERB_QUIET,
	.run = op_recover,
	.result_size = sizeof(struct recover_res),
	.result = recover_fields,
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

static int op_check(struct verb_call *c, const void *req, void *result, struct err *e)
{
	struct check_res *res = result;

	(void)req;
	if (txn_verify(c->h, note, res, &res->transactions, e) == 0)
		return 0;
	check_free(res);
	return -1;
}

static json_t *wrong_things(const void *at)
{
	const struct check_res *res = at;
	json_t *a = json_array();

	for (size_t i = 0; res->wrong && res->wrong[i]; i++) {
		json_t *o = json_object();

		json_set_str(o, "what", res->wrong[i]);
		json_array_append_new(a, o);
	}
	return a;
}

static const struct field wrong_fields[] = {
	{ "what", FIELD_STRING, 0, "a sentence about it" },
	{ NULL },
};

static const struct field check_fields[] = {
	{ "transactions", FIELD_UNSIGNED, offsetof(struct check_res, transactions),
	  "that were looked at" },
	{ "wrong", FIELD_LIST, 0, "what is not as it should be", .fields = wrong_fields,
	  .make = wrong_things },
	{ NULL },
};

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
	.request_size = sizeof(struct check_req),
	.home = HOME_LOOK,
	.flags = VERB_JSON | VERB_QUIET,
	.run = op_check,
	.result_size = sizeof(struct check_res),
	.result = check_fields,
	.status = check_status,
	.free = check_free,
};
