/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ops/json.h"
#include "ops/status.h"

#define AT(field) offsetof(struct diff_req, field)

static const struct verb_opt opts[] = {
	{ "stat", 0, OPT_FLAG, NULL, "lines added and removed per file", AT(stat) },
	{ "name-status", 0, OPT_FLAG, NULL, "letters and paths only", AT(name_status) },
	{ "null", 'z', OPT_FLAG, NULL,
	  "letters and names, unquoted, each ended by a NUL byte", AT(null) },
	{ "exit-code", 0, OPT_FLAG, NULL, "exit with 1 if there are changes",
	  AT(exit_code) },
	{ "no-renames", 0, OPT_FLAG, NULL, "show a rename as a deletion and an addition",
	  AT(no_renames) },
	{ "no-pager", 0, OPT_FLAG, NULL, "print straight to the terminal", AT(no_pager) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ "PATH", ARG_PATH, false, true, AT(paths) },
	{ NULL },
};

static void diff_free(void *result)
{
	struct diff_res *res = result;

	change_list_free(&res->list);
	free(res->layers);
	txn_record_free(&res->rec);
}

/* The transaction meant, and the operands that are paths. */
static int sort_operands(struct op_ctx *ctx, const struct diff_req *rq, struct txn *t,
			 char ***paths, struct err *e)
{
	bool is_path = false;
	size_t i;
	char *s;

	if (op_ctx_txn(ctx, rq->txn, t, e) < 0) {
		struct err none;

		if (!rq->txn || e->kind != ERR_USAGE)
			return -1;
		/* Not one of ours by number or name: a path, of the transaction here. */
		if (op_ctx_txn(ctx, NULL, t, &none) < 0)
			return -1;
		is_path = true;
	}
	if (is_path) {
		if (op_ctx_path(ctx, rq->txn, &s, e) < 0)
			return -1;
		strv_push(paths, s);
	}
	for (i = 0; rq->paths && rq->paths[i]; i++) {
		if (op_ctx_path(ctx, rq->paths[i], &s, e) < 0)
			return -1;
		strv_push(paths, s);
	}
	return 0;
}

static bool covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(dir, path, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* A path that is nowhere is a slip of the user's, not an empty answer. */
static int check_paths(const struct change_list *l, char *const *paths,
		       const struct diff_req *rq, struct err *e)
{
	bool first_is_txn = strv_len(paths) == strv_len(rq->paths);
	struct stat st;
	size_t i, k;

	for (i = 0; paths && paths[i]; i++) {
		for (k = 0; k < l->n && !covers(paths[i], l->v[k].c.path); k++)
			;
		if (k < l->n || lstat(paths[i], &st) == 0)
			continue;
		if (i == 0 && !first_is_txn)
			err_set(e, ERR_USAGE, "no transaction and no path named '%s'",
				rq->txn);
		else
			err_set(e, ERR_USAGE, "no path named '%s'", paths[i]);
		return err_hint(e, "see: stet list, stet status");
	}
	return 0;
}

int op_diff(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct diff_req *rq = req;
	struct diff_res *res = result;
	struct txn t = { .lock = -1 };
	char **paths = NULL;
	int r;

	r = sort_operands(ctx, rq, &t, &paths, e);
	if (r == 0) {
		res->rec = t.rec;
		memset(&t.rec, 0, sizeof(t.rec));
		res->layers = txn_layers(&res->rec, &res->nlayers);
		r = op_collect(&res->rec, res->layers, res->nlayers,
			       (const char *const *)paths, !rq->no_renames, &res->list,
			       e);
	}
	if (r == 0)
		r = check_paths(&res->list, paths, rq, e);
	strv_free(paths);
	txn_close(&t);
	if (r < 0) {
		diff_free(res);
		memset(res, 0, sizeof(*res));
	}
	return r;
}

int diff_patch(const struct diff_res *res, size_t i, struct buf *out,
	       struct patch_stat *st, struct err *e)
{
	const struct change_item *it = &res->list.v[i];
	const struct change *from = NULL;

	if (it->renamed_from != SIZE_MAX)
		from = &res->list.v[it->renamed_from].c;
	return patch_make(res->layers, &it->c, from, res->rec.workspace, out, st, e);
}

static json_t *diff_json(const void *result)
{
	const struct diff_res *res = result;
	json_t *o = json_result(), *changes = json_array();
	size_t i;

	json_object_set_new(o, "txn", json_txn(&res->rec));
	for (i = 0; i < res->list.n; i++) {
		const struct change_item *it = &res->list.v[i];
		AUTO_BUF struct buf b = BUF_INIT;
		struct patch_stat st = { 0 };
		struct err e;
		json_t *c;

		if (it->renamed_away)
			continue;
		c = json_change(&it->c, change_item_from(&res->list, it));
		if (diff_patch(res, i, &b, &st, &e) == 0) {
			json_object_set_new(c, "lines_added",
					    json_integer((json_int_t)st.added));
			json_object_set_new(c, "lines_removed",
					    json_integer((json_int_t)st.removed));
			json_object_set_new(c, "binary", json_boolean(st.binary));
			json_set_bytes(c, "patch", buf_str(&b), b.len);
		} else {
			json_set_str(c, "error", e.msg);
		}
		json_array_append_new(changes, c);
	}
	json_object_set_new(o, "changes", changes);
	return o;
}

static int diff_status(const void *req, const void *res)
{
	const struct diff_req *rq = req;

	return rq->exit_code && ((const struct diff_res *)res)->list.n > 0;
}

const struct verb verb_diff = {
	.name = "diff",
	.summary = "show the changes of a transaction line by line",
	.description =
		"Shows how the files of a transaction differ from the host's, in the unified "
		"format that git and patch read. Lines that begin with # tell what that format "
		"cannot: owners, extended attributes, devices.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest one of the "
		"current directory. PATHs limit the output to what lies at or below them. A "
		"first operand that names no transaction is taken for a path.\n"
		"\n"
		"On a terminal the output is coloured and goes through STET_PAGER, GIT_PAGER, "
		"PAGER or less, and control characters are shown escaped; elsewhere it is exact, "
		"byte for byte.\n"
		"\n"
		"  stet diff\n"
		"  stet diff t3 src/ --stat\n"
		"  stet diff --exit-code -- Makefile",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON | VERB_COLOR,
	.request_size = sizeof(struct diff_req),
	.result_size = sizeof(struct diff_res),
	.run = op_diff,
	.json = diff_json,
	.status = diff_status,
	.free = diff_free,
};
