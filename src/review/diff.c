/* SPDX-License-Identifier: Apache-2.0 */
#include "review/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "call/call.h"
#include "call/json.h"
#include "diff/list.h"
#include "diff/walk.h"
#include "journal/txn_rows.h"
#include "review/checkpoint.h"
#include "review/diff_sides.h"
#include "review/status.h"
#include "timeline/pair.h"
#include "txn/chosen.h"
#include "txn/end.h"

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
	{ "no-pager", 0, OPT_FLAG, NULL, "print straight to the terminal",
	  AT(common.no_pager) },
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

	changes_free(&res->changes);
	strv_free(res->paths);
	path_notes_free(&res->conflicts);
	known_close(res->known);
	if (res->checks) {
		timeline_pair_free(&res->pair);
		timeline_close(res->checks);
		txn_close(&res->held);
	}
	txn_sides_close(&res->sides);
	txn_facts_free(&res->txn);
}

/* The transaction meant, and the operands that are paths, made absolute. */
static int sort_operands(struct verb_call *c, const struct diff_req *rq, char ***paths,
			 struct err *e)
{
	char *s;
	size_t i;
	int r = call_operands(c, rq->txn, rq->paths, e);

	for (i = 0; r == 0 && c->paths && c->paths[i]; i++) {
		r = op_ctx_path(c->ctx, c->paths[i], &s, e);
		if (r == 0)
			strv_push(paths, s);
	}
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

/* For --conflicts: passes on only those changes that are conflicts. */
struct filter {
	const struct diff_res *res;
	change_fn *fn;
	void *arg;
};

static int only_conflicts(void *arg, const struct change *c, struct err *e)
{
	const struct filter *f = arg;

	return diff_conflict(f->res, c->path) ? f->fn(f->arg, c, e) : 0;
}

static int source(const void *from, change_fn *fn, void *arg, struct err *e)
{
	const struct diff_res *res = from;
	const char *const *paths = (const char *const *)res->paths;
	struct filter f = { res, fn, arg };

	if (!res->checks && !op_has_changes(&res->txn.rec))
		return 0;
	if (!res->known)
		return change_walk_paths(res->layers, res->nlayers, paths, fn, arg, e);
	return res->conflicts.n ? change_walk_paths(res->layers, res->nlayers, paths,
						    only_conflicts, &f, e)
				: 0;
}

/* Which of the paths have changes. */
struct met {
	char *const *paths;
	bool *v;
};

static bool covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(dir, path, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int note_path(void *arg, const struct change *c, struct err *e)
{
	struct met *m = arg;

	(void)e;
	for (size_t i = 0; m->paths && m->paths[i]; i++)
		m->v[i] = m->v[i] || covers(m->paths[i], c->path);
	return 0;
}

/* @met: for each of the paths, or NULL. */
static int find(struct diff_res *res, const struct diff_req *rq, bool *met, struct err *e)
{
	struct met m = { res->paths, met };

	if (changes_find(&res->changes, source, res, met ? note_path : NULL, &m, e) < 0)
		return -1;
	return rq->no_renames || rq->conflicts
		       ? 0
		       : changes_renames(&res->changes, res->layers, e);
}

/* What two checkpoints differ in. */
static int between(struct verb_call *c, const struct diff_req *rq, int64_t a, int64_t b,
		   struct diff_res *res, struct err *e)
{
	int r;

	if (sort_operands(c, rq, &res->paths, e) < 0)
		return -1;
	/* The checkpoints point to it, and it has to live as long as they do. */
	res->held = c->t;
	c->t = (struct txn){ .lock = -1 };
	r = timeline_open(c->h, &res->held, false, &res->checks, e);
	if (r == 0)
		r = b == TIMELINE_NOW ? 0 : timeline_exists(res->checks, b, e);
	if (r == 0) {
		if (a < 0)
			a = timeline_before(res->checks, b);
		res->from = a;
		res->to = b;
		r = timeline_exists(res->checks, a, e);
	}
	if (r == 0)
		r = timeline_pair(res->checks, a, b, &res->pair, e);
	if (r == 0) {
		res->layers = res->pair.layers;
		res->nlayers = res->pair.n;
		r = find(res, rq, NULL, e);
	}
	if (res->checks &&
	    journal_txn_get(c->h->journal, res->held.rec.id, &res->txn.rec, e) < 0)
		r = -1;
	if (!res->checks)
		txn_close(&res->held);
	return r;
}

static const struct verb_states states_with_changes = {
	.in = IN(TXN_RUNNING) | IN(TXN_INTERRUPTED) | IN(TXN_PENDING) | IN(TXN_GONE),
	.refusals = { { IN(TXN_KEPT), ": its changes are the host's",
			"see: stet status @; take it back: stet undo @" },
		      { IN(TXN_HALFWAY), NULL, "go on with it: stet recover" },
		      { IN(TXN_EMPTY), ": its changes are gone", NULL } },
};

/* A path that neither exists nor was changed is an error of the user, not an empty answer. */
static int check_paths(const struct op_ctx *ctx, char *const *paths, const bool *met,
		       const struct diff_req *rq, struct err *e)
{
	bool first_is_txn = strv_len(paths) == strv_len(rq->paths);
	struct stat st;
	size_t i;

	for (i = 0; paths && paths[i]; i++) {
		/* What the host has there is not for the inside to know. */
		if (met[i] || ctx->only || lstat(paths[i], &st) == 0)
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
static int find_conflicts(struct home *h, struct txn *t, struct diff_res *res,
			  struct err *e)
{
	struct commit_wish w = { .dry_run = true };
	struct commit_result r;
	char **names = NULL;
	size_t i;
	int x;

	for (i = 0; res->paths && res->paths[i]; i++)
		strv_push(&names, chosen_literal(res->paths[i]));
	w.paths = (const char *const *)names;
	x = txn_commit(h, t, &w, &r, e);
	strv_free(names);
	res->conflicts = r.conflicts;
	memset(&r.conflicts, 0, sizeof(r.conflicts));
	commit_result_free(&r);
	if (x < 0 && (e->kind != ERR_CONFLICT || !res->conflicts.n))
		return -1;
	strv_free(res->paths);
	res->paths = NULL;
	for (i = 0; i < res->conflicts.n; i++)
		strv_push(&res->paths, xstrdup(res->conflicts.v[i].path));
	return known_open(h, t, &res->known, e);
}

static int collect(struct verb_call *c, const struct diff_req *rq, struct diff_res *res,
		   struct err *e)
{
	AUTO_FREE bool *met = NULL;

	if (sort_operands(c, rq, &res->paths, e) < 0)
		return -1;
	if (rq->conflicts && find_conflicts(c->h, &c->t, res, e) < 0)
		return -1;
	txn_facts_take(&res->txn, &c->t);
	if (txn_sides_open(&res->txn.rec, &res->sides, e) < 0)
		return -1;
	res->layers = res->sides.v;
	res->nlayers = res->sides.n;
	met = xcalloc(strv_len(res->paths) + 1, sizeof(*met));
	if (find(res, rq, met, e) < 0)
		return -1;
	return rq->conflicts ? 0 : check_paths(c->ctx, res->paths, met, rq, e);
}

static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	struct diff_req rest;
	int64_t a, b;

	(void)ctx;
	if (((const struct diff_req *)req)->conflicts && take_range(req, &rest, &a, &b))
		return err_set(e, ERR_USAGE,
			       "checkpoints have no conflicts with the host");
	return 0;
}

static const struct verb_states *states_of(const void *req)
{
	struct diff_req rest;
	int64_t a, b;

	return take_range(req, &rest, &a, &b) ? &states_with_checkpoints
					      : &states_with_changes;
}

int diff_make(struct verb_call *c, const void *req, void *result, struct err *e)
{
	struct diff_res *res = result;
	struct diff_req rest;
	int64_t a, b;
	int r = take_range(req, &rest, &a, &b) ? between(c, &rest, a, b, res, e)
					       : collect(c, req, res, e);

	if (r < 0) {
		diff_free(res);
		memset(res, 0, sizeof(*res));
	}
	return r;
}

static int patch(const struct diff_res *res, const struct change_item *it,
		 struct buf *out, struct patch_stat *st, struct err *e)
{
	return patch_make(res->layers, &it->c, changes_from(&res->changes, it),
			  res->txn.rec.workspace, out, st, e);
}

int diff_lines(const struct diff_res *res, const struct change_item *it,
	       struct patch_stat *st, struct err *e)
{
	return patch(res, it, NULL, st, e);
}

int diff_text(const struct diff_res *res, const struct change_item *it, struct buf *out,
	      struct err *e)
{
	AUTO_BUF struct buf name = BUF_INIT;

	if (!res->known)
		return patch(res, it, out, NULL, e);
	patch_name(it->c.path, res->txn.rec.workspace, &name);
	buf_adds(out, "# ");
	text_quote(out, buf_str(&name), name.len);
	buf_addf(out, ": %s\n", diff_conflict(res, it->c.path));
	return diff_sides(res, it, out, e);
}

static void json_conflict(const struct diff_res *res, const struct change_item *it,
			  json_t *c)
{
	const char *what = diff_conflict(res, it->c.path);
	AUTO_BUF struct buf b = BUF_INIT;
	struct err e;

	if (!what)
		return;
	json_set_str(c, "conflict", what);
	if (diff_sides(res, it, &b, &e) == 0)
		json_set_bytes(c, "sides", buf_str(&b), b.len);
}

struct lines {
	const struct diff_res *res;
	verb_item_fn *emit;
	void *arg;
};

static int json_line(void *arg, const struct change_item *it, struct err *e)
{
	const struct lines *l = arg;
	const struct change *from = changes_from(&l->res->changes, it);
	AUTO_BUF struct buf b = BUF_INIT;
	struct patch_stat st = { 0 };
	struct err why;
	json_t *c;

	if (it->renamed_away)
		return 0;
	c = json_change(&it->c, from ? from->path : NULL);
	if (patch(l->res, it, &b, &st, &why) == 0) {
		json_object_set_new(c, "lines_added", json_integer((json_int_t)st.added));
		json_object_set_new(c, "lines_removed",
				    json_integer((json_int_t)st.removed));
		json_object_set_new(c, "binary", json_boolean(st.binary));
		json_set_bytes(c, "patch", buf_str(&b), b.len);
		json_conflict(l->res, it, c);
	} else {
		json_set_str(c, "error", why.msg);
	}
	return l->emit(l->arg, c, e);
}

int diff_each(const void *result, verb_item_fn *emit, void *arg, struct err *e)
{
	const struct diff_res *res = result;
	struct lines l = { res, emit, arg };

	return changes_each(&res->changes, json_line, &l, e);
}

static bool is_between(const void *at)
{
	return ((const struct diff_res *)at)->checks;
}

static json_t *to(const void *at)
{
	const struct diff_res *res = at;

	return res->to == TIMELINE_NOW ? json_null() : json_integer(res->to);
}

/* Beside those of every change. */
static const struct field item_fields[] = {
	{ "", FIELD_OBJECT, 0, "", FIELD_FLAT, change_fields },
	{ "lines_added", FIELD_UINT64, 0, "a count", FIELD_IF_SET },
	{ "lines_removed", FIELD_UINT64, 0, "a count", FIELD_IF_SET },
	{ "binary", FIELD_BOOL, 0, "it is no text", FIELD_IF_SET },
	{ "patch", FIELD_STRING, 0, "in the unified format", FIELD_IF_SET },
	{ "conflict", FIELD_STRING, 0, "--conflicts: what happened there", FIELD_IF_SET },
	{ "sides", FIELD_STRING, 0, "--conflicts: patches between host and transaction",
	  FIELD_IF_SET },
	{ "error", FIELD_STRING, 0, "why there is no patch", FIELD_IF_SET },
	{ NULL },
};

#define RES(field) offsetof(struct diff_res, field)

const struct field diff_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "from", FIELD_INT64, RES(from), "the older checkpoint", .present = is_between },
	{ "to", FIELD_INT64, 0, "the newer checkpoint; null: now", FIELD_CAN_NULL,
	  .present = is_between, .make = to },
	{ "changes", FIELD_ITEMS, 0, "one by one", .fields = item_fields },
	{ NULL },
};

static int diff_status(const void *req, const void *res)
{
	const struct diff_req *rq = req;

	return rq->exit_code && ((const struct diff_res *)res)->changes.n > 0;
}

const struct verb verb_diff = {
	.name = "diff",
	.summary = "show the changes of a transaction line by line",
	.description =
		"Shows how the files of a transaction differ from the host's, in the unified "
		"format that git and patch read. Lines that begin with # tell what that format "
		"cannot: owners, extended attributes, devices.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest open one of the "
		"current directory. Alone or after it, N stands for what checkpoint N changed, "
		"N..M for what happened between two, and N.. for what happened since (a "
		"transaction is t3, a checkpoint 3). "
		"PATHs limit the output to what lies at or below them. A "
		"first operand that names no transaction is taken for a path.\n"
		"\n"
		"With --conflicts, only the paths are shown that changed on the host, too: the "
		"host's version against the transaction's and, where it is known what the "
		"transaction saw (base), each against that. Of what was hidden from the command "
		"no content of the host's is shown.\n"
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
	.check = check,
	.request_size = sizeof(struct diff_req),
	.home = HOME_LOOK,
	.target = TARGET_BODY,
	.states = &states_with_changes,
	.states_of = states_of,
	.inside = INSIDE_ASKS,
	.flags = VERB_JSON | VERB_COLOR | VERB_PAGER | VERB_TXN_FIRST,
	.run = diff_make,
	.result_size = sizeof(struct diff_res),
	.result = diff_fields,
	.list = { "changes", diff_each },
	.status = diff_status,
	.free = diff_free,
};
