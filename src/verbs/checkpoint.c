/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/txn_rows.h"
#include "session/housekeep.h"
#include "session/json.h"
#include "session/paths.h"
#include "timeline/known.h"
#include "txn/end.h"

static bool number(const char *s, size_t len, int64_t *out)
{
	char digits[20], *end;

	if (!len || len >= sizeof(digits) || strspn(s, "0123456789") < len)
		return false;
	memcpy(digits, s, len);
	digits[len] = '\0';
	errno = 0;
	*out = strtoll(digits, &end, 10);
	return errno == 0;
}

int point_parse(const char *text, const char *option, int64_t *seq, struct err *e)
{
	if (number(text, strlen(text), seq))
		return 0;
	err_set(e, ERR_USAGE, "%s: '%s' is not the number of a checkpoint", option, text);
	return err_hint(e, "see: stet log");
}

bool point_range(const char *text, int64_t *a, int64_t *b)
{
	const char *dots = strstr(text, "..");

	*a = -1;
	if (!dots)
		return number(text, strlen(text), b);
	*b = TIMELINE_NOW;
	return number(text, (size_t)(dots - text), a) &&
	       (!dots[2] || number(dots + 2, strlen(dots + 2), b));
}

json_t *point_json(const struct ckpt_record *r)
{
	struct change_totals t = { r->added, r->modified, r->deleted, r->bytes };
	json_t *o = json_object();

	json_object_set_new(o, "checkpoint", json_integer(r->seq));
	json_set_time(o, "time", r->time_ns);
	json_set_str(o, "cause", r->cause);
	json_object_set_new(o, "of",
			    r->target >= 0 ? json_integer(r->target) : json_null());
	json_object_set_new(o, "named", json_boolean(r->named));
	json_set_str(o, "command", r->command);
	json_set_str(o, "note", r->note);
	json_object_set_new(o, "changes", json_totals(&t));
	return o;
}

/* --- checkpoint --- */

#define AT(field) offsetof(struct checkpoint_req, field)

static const struct verb_opt checkpoint_opts[] = {
	{ "message", 'm', OPT_STRING, "TEXT", "a note for stet log", AT(message) },
	{ NULL },
};

static const struct verb_arg checkpoint_args[] = {
	{ "TX", ARG_TXN, false, false, AT(txn) },
	{ NULL },
};

enum { NOTE_MAX = 4096 };

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void copy_record(const struct ckpt_record *from, struct ckpt_record *to)
{
	*to = *from;
	to->cause = xstrdup(from->cause);
	to->command = from->command ? xstrdup(from->command) : NULL;
	to->note = from->note ? xstrdup(from->note) : NULL;
}

int op_checkpoint(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct checkpoint_req *rq = req;
	/* Those that the inside asks for are thinned out like others. */
	const struct ckpt_wish w = { .cause = ctx->only ? "agent" : "request",
				     .note = rq->message,
				     .named = !ctx->only };
	struct checkpoint_res *res = result;
	const struct ckpt_record *made;
	struct txn t = { .lock = -1 };
	struct timeline *c = NULL;
	int64_t began;
	struct home *h;
	int r;

	if (rq->message && strlen(rq->message) > NOTE_MAX)
		return err_set(e, ERR_USAGE, "--message: longer than %d bytes", NOTE_MAX);
	if (op_ctx_look(ctx, &h, e) < 0 || op_ctx_txn(ctx, rq->txn, &t, e) < 0)
		return -1;
	began = now_us();
	r = timeline_open(h, &t, true, &c, e);
	if (r == 0)
		r = timeline_take(c, &w, &made, e);
	if (r == 0 && !made)
		r = timeline_adopt(c, &w, e);
	if (r >= 0) {
		const struct ckpt_records *all = timeline_all(c);

		res->none = !made;
		res->noted = r > 0 && rq->message;
		res->paused_us = timeline_paused_us(c);
		res->took_us = now_us() - began;
		res->last = all->n ? all->v[all->n - 1].seq : 0;
		if (made)
			copy_record(made, &res->point);
		res->rec = t.rec;
		memset(&t.rec, 0, sizeof(t.rec));
	}
	timeline_close(c);
	txn_close(&t);
	return r < 0 ? -1 : 0;
}

int point_interval(struct op_ctx *ctx, struct err *e)
{
	const struct ckpt_wish w = { .cause = "interval" };
	const struct ckpt_record *made;
	struct txn t = { .lock = -1 };
	struct timeline *c = NULL;
	struct home *h;
	int r;

	if (op_ctx_look(ctx, &h, e) < 0 ||
	    journal_txn_get(h->journal, ctx->only, &t.rec, e) < 0)
		return -1;
	r = timeline_open(h, &t, true, &c, e);
	if (r == 0)
		r = timeline_take(c, &w, &made, e);
	timeline_close(c);
	txn_close(&t);
	return r;
}

static json_t *checkpoint_json(const void *result)
{
	const struct checkpoint_res *res = result;
	json_t *o = json_result();

	json_object_set_new(o, "txn", json_txn(&res->rec));
	json_object_set_new(o, "checkpoint",
			    res->none ? json_null() : point_json(&res->point));
	json_object_set_new(o, "last", json_integer(res->last));
	json_object_set_new(o, "noted", json_boolean(res->noted));
	json_object_set_new(o, "paused_us", json_integer(res->paused_us));
	json_object_set_new(o, "took_us", json_integer(res->took_us));
	return o;
}

static void checkpoint_free(void *result)
{
	struct checkpoint_res *res = result;

	ckpt_record_free(&res->point);
	txn_record_free(&res->rec);
}

const struct verb verb_checkpoint = {
	.name = "checkpoint",
	.summary = "keep the present state of a transaction",
	.description =
		"Keeps what a transaction holds at this moment, under the next number, so that "
		"it can be gone back to: stet log lists the numbers, stet rollback --to goes "
		"back, stet diff and stet show compare. Number 0 is the beginning. If nothing "
		"has changed since the last one, none is made, and that one gets the note, "
		"behind the one it has, and is kept; from inside a checkpoint that was asked for "
		"outside is left alone. The processes of a transaction that "
		"runs are stopped for the moment; most is copied before that. "
		"Private directories (/tmp, /var/tmp) are not part of it.\n"
		"\n"
		"TX is the number or name of a transaction; without it, the newest open one of the "
		"current directory.\n"
		"\n"
		"  stet checkpoint -m 'before the big rewrite'",
	.opts = checkpoint_opts,
	.args = checkpoint_args,
	.flags = VERB_JSON | VERB_QUIET | VERB_INSIDE,
	.request_size = sizeof(struct checkpoint_req),
	.result_size = sizeof(struct checkpoint_res),
	.run = op_checkpoint,
	.json = checkpoint_json,
	.free = checkpoint_free,
};

/* --- restore --- */

#undef AT
#define AT(field) offsetof(struct restore_req, field)

static const struct verb_opt restore_opts[] = {
	{ "from", 0, OPT_STRING, "N", "the checkpoint to take them from", AT(from) },
	{ "txn", 't', OPT_STRING, "TX", "the transaction (default: the newest one here)",
	  AT(txn), NULL, ARG_TXN },
	{ NULL },
};

static const struct verb_arg restore_args[] = {
	{ "PATH", ARG_PATH, true, true, AT(paths) },
	{ NULL },
};

/* A slip of the pen is no success, and nothing of the rest is done. */
static int check_known(struct timeline *c, const struct restore_req *rq,
		       char *const *paths, const struct txn_record *r, struct err *e)
{
	int known = 1;

	for (size_t i = 0; paths[i] && known > 0; i++) {
		known = timeline_knows(c, paths[i], e);
		if (known)
			continue;
		err_set(e, ERR_USAGE,
			"%s was not there at any checkpoint of t%lld, and is not now",
			rq->paths[i], (long long)r->id);
		err_hint(e, "stet status and stet show N name paths");
	}
	return known > 0 ? 0 : -1;
}

int op_restore(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct restore_req *rq = req;
	struct restore_res *res = result;
	struct txn t = { .lock = -1 };
	struct timeline *c = NULL;
	char **paths = NULL, *s;
	struct home *h;
	int r = 0;

	if (!rq->from) {
		err_set(e, ERR_USAGE, "restore: --from N is missing");
		return err_hint(e, "stet log lists the checkpoints");
	}
	if (point_parse(rq->from, "--from", &res->from, e) < 0 ||
	    op_ctx_look(ctx, &h, e) < 0 || op_ctx_txn(ctx, rq->txn, &t, e) < 0)
		return -1;
	for (size_t i = 0; r == 0 && rq->paths[i]; i++) {
		r = op_ctx_path(ctx, rq->paths[i], &s, e);
		if (r == 0)
			strv_push(&paths, s);
	}
	if (r == 0)
		housekeep_stop(h, t.rec.id);
	if (r == 0)
		r = timeline_open(h, &t, true, &c, e);
	if (r == 0)
		r = check_known(c, rq, paths, &t.rec, e);
	if (r == 0)
		r = timeline_go(c, res->from, (const char *const *)paths, &res->done, e);
	housekeep_again(h, &t);
	if (r == 0) {
		res->rec = t.rec;
		memset(&t.rec, 0, sizeof(t.rec));
	}
	timeline_close(c);
	strv_free(paths);
	txn_close(&t);
	return r;
}

static json_t *restore_json(const void *result)
{
	const struct restore_res *res = result;
	json_t *o = json_result();

	json_object_set_new(o, "txn", json_txn(&res->rec));
	json_object_set_new(o, "from", json_integer(res->from));
	json_object_set_new(o, "before", json_integer(res->done.before));
	json_object_set_new(o, "after",
			    res->done.after ? json_integer(res->done.after)
					    : json_null());
	return o;
}

static void restore_free(void *res)
{
	txn_record_free(&((struct restore_res *)res)->rec);
}

const struct verb verb_restore = {
	.name = "restore",
	.summary = "bring paths back as they were at a checkpoint",
	.description =
		"Makes PATHs, with all that is below them, what they were at checkpoint N of the "
		"transaction. Everything else stays as it is. The state before is kept as a "
		"checkpoint, so that this can be taken back with stet rollback --to. What was not "
		"there at N is removed.\n"
		"\n"
		"  stet restore src/parser.c --from 3",
	.opts = restore_opts,
	.args = restore_args,
	.flags = VERB_JSON | VERB_QUIET | VERB_INSIDE,
	.request_size = sizeof(struct restore_req),
	.result_size = sizeof(struct restore_res),
	.run = op_restore,
	.json = restore_json,
	.free = restore_free,
};
