/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ops/json.h"
#include "ops/point.h"
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
	{ "conflicts", 0, OPT_FLAG, NULL,
	  "only what a commit would refuse, each side against the other", AT(conflicts) },
	{ "no-pager", 0, OPT_FLAG, NULL, "print straight to the terminal", AT(no_pager) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ "PATH", ARG_PATH, false, true, AT(paths) },
	{ NULL },
};

void diff_free(void *result)
{
	struct diff_res *res = result;

	change_list_free(&res->list);
	path_notes_free(&res->conflicts);
	known_close(res->known);
	if (res->checks) {
		checks_pair_free(&res->pair);
		checks_close(res->checks);
		txn_close(&res->txn);
	} else {
		free(res->layers);
	}
	txn_record_free(&res->rec);
}

/* The transaction meant, and the operands that are paths, made absolute. */
static int sort_operands(struct op_ctx *ctx, const struct diff_req *rq, struct txn *t,
			 char ***paths, struct err *e)
{
	char **words = NULL, *s;
	size_t i;
	int r;

	r = op_ctx_operands(ctx, rq->txn, rq->paths, t, &words, e);
	for (i = 0; r == 0 && words && words[i]; i++) {
		r = op_ctx_path(ctx, words[i], &s, e);
		if (r == 0)
			strv_push(paths, s);
	}
	strv_free(words);
	return r;
}

/* The request without the word for checkpoints, if it has one. */
static bool take_range(const struct diff_req *rq, struct diff_req *rest, int64_t *a,
		       int64_t *b)
{
	*rest = *rq;
	if (rq->txn && point_range(rq->txn, a, b)) {
		rest->txn = rq->paths ? rq->paths[0] : NULL;
		rest->paths = rest->txn && rq->paths[1] ? rq->paths + 1 : NULL;
	} else if (rq->txn && rq->paths && point_range(rq->paths[0], a, b)) {
		rest->paths = rq->paths[1] ? rq->paths + 1 : NULL;
	} else {
		return false;
	}
	return true;
}

/* What two checkpoints differ in. */
static int between(struct op_ctx *ctx, const struct diff_req *rq, int64_t a, int64_t b,
		   struct diff_res *res, struct err *e)
{
	char **paths = NULL;
	struct home *h;
	int r;

	res->txn = (struct txn){ .lock = -1 };
	if (op_ctx_look(ctx, &h, e) < 0 ||
	    sort_operands(ctx, rq, &res->txn, &paths, e) < 0)
		return -1;
	r = checks_open(h, &res->txn, false, &res->checks, e);
	if (r == 0)
		r = checks_exists(res->checks, b, e);
	if (r == 0) {
		if (a < 0)
			a = checks_before(res->checks, b);
		res->from = a;
		res->to = b;
		r = checks_exists(res->checks, a, e);
	}
	if (r == 0)
		r = checks_pair(res->checks, a, b, &res->pair, e);
	if (r == 0) {
		res->layers = res->pair.layers;
		res->nlayers = res->pair.n;
		r = change_collect_paths(res->layers, res->nlayers,
					 (const char *const *)paths, &res->list, e);
	}
	if (r == 0) {
		op_leave_out_times(&res->list);
		if (!rq->no_renames)
			r = change_find_renames(res->layers, &res->list, e);
	}
	strv_free(paths);
	if (res->checks && journal_txn_get(h->journal, res->txn.rec.id, &res->rec, e) < 0)
		r = -1;
	if (!res->checks)
		txn_close(&res->txn);
	return r;
}

static int check_state(const struct txn_record *rec, struct err *e)
{
	long long id = rec->id;

	switch (txn_look(rec)) {
	case TXN_KEPT:
		err_set(e, ERR_STATE, "t%lld is committed: its changes are the host's",
			id);
		return err_hint(e,
				"see: stet status t%lld; take it back: stet undo t%lld",
				id, id);
	case TXN_HALFWAY:
		err_set(e, ERR_STATE, "t%lld is unfinished", id);
		return err_hint(e, "go on with it: stet recover");
	default:
		return 0;
	}
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

/* What a commit would refuse, and only that. */
static int find_conflicts(struct home *h, struct txn *t, char ***paths,
			  struct diff_res *res, struct err *e)
{
	const struct commit_wish w = { .paths = (const char *const *)*paths,
				       .dry_run = true };
	struct commit_result r;
	size_t i;
	int x;

	x = txn_commit(h, t, &w, &r, e);
	res->conflicts = r.conflicts;
	memset(&r.conflicts, 0, sizeof(r.conflicts));
	commit_result_free(&r);
	if (x < 0 && (e->kind != ERR_CONFLICT || !res->conflicts.n))
		return -1;
	strv_free(*paths);
	*paths = NULL;
	for (i = 0; i < res->conflicts.n; i++)
		strv_push(paths, xstrdup(res->conflicts.v[i].path));
	return known_open(h, t, &res->known, e);
}

/* Below a conflicting directory there may be more than it was about. */
static void leave_out_others(struct diff_res *res)
{
	struct change_list *l = &res->list;
	size_t i, k = 0;

	for (i = 0; i < l->n; i++) {
		struct change_item it = l->v[i];

		l->v[i] = l->v[k];
		l->v[k] = it;
		k += diff_conflict(res, k) != NULL;
	}
	while (l->n > k) {
		struct change_list one = { &l->v[l->n - 1], 1, 1 };
		struct change_item *v = xmalloc(sizeof(*v));

		*v = *one.v;
		one.v = v;
		change_list_free(&one);
		l->n--;
	}
}

static int collect(struct op_ctx *ctx, const struct diff_req *rq, struct txn *t,
		   char ***paths, struct diff_res *res, struct err *e)
{
	struct home *h;
	int r;

	if (op_ctx_look(ctx, &h, e) < 0 || sort_operands(ctx, rq, t, paths, e) < 0 ||
	    check_state(&t->rec, e) < 0)
		return -1;
	if (rq->conflicts && find_conflicts(h, t, paths, res, e) < 0)
		return -1;
	res->rec = t->rec;
	memset(&t->rec, 0, sizeof(t->rec));
	res->layers = txn_layers(&res->rec, &res->nlayers);
	if (rq->conflicts && !*paths)
		return 0;
	r = op_collect(&res->rec, res->layers, res->nlayers, (const char *const *)*paths,
		       !rq->no_renames && !rq->conflicts, &res->list, e);
	if (r == 0 && rq->conflicts)
		leave_out_others(res);
	return r;
}

int op_diff(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct diff_req *rq = req;
	struct diff_res *res = result;
	struct txn t = { .lock = -1 };
	char **paths = NULL;
	struct diff_req rest;
	int64_t a, b;
	int r;

	if (take_range(rq, &rest, &a, &b)) {
		if (rq->conflicts)
			return err_set(e, ERR_USAGE,
				       "checkpoints have no conflicts with the host");
		r = between(ctx, &rest, a, b, res, e);
	} else {
		r = collect(ctx, rq, &t, &paths, res, e);
	}
	if (r == 0 && !rq->conflicts && !res->checks)
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

static void json_conflict(const struct diff_res *res, size_t i, json_t *c)
{
	const char *what = diff_conflict(res, i);
	AUTO_BUF struct buf b = BUF_INIT;
	struct err e;

	if (!what)
		return;
	json_set_str(c, "conflict", what);
	if (diff_sides(res, i, &b, &e) == 0)
		json_set_bytes(c, "sides", buf_str(&b), b.len);
}

static json_t *diff_json(const void *result)
{
	const struct diff_res *res = result;
	json_t *o = json_result(), *changes = json_array();
	size_t i;

	json_object_set_new(o, "txn", json_txn(&res->rec));
	if (res->checks) {
		json_object_set_new(o, "from", json_integer(res->from));
		json_object_set_new(o, "to", json_integer(res->to));
	}
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
			json_conflict(res, i, c);
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
		"current directory. Alone or after it, N stands for what checkpoint N changed, "
		"and N..M for what happened between two (a transaction is t3, a checkpoint 3). "
		"PATHs limit the output to what lies at or below them. A "
		"first operand that names no transaction is taken for a path.\n"
		"\n"
		"With --conflicts, only the paths are shown that changed on the host, too: the "
		"host's version against the transaction's and, where it is known what the "
		"transaction saw (base), each against that.\n"
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
