/* SPDX-License-Identifier: Apache-2.0 */
#include "review/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/call.h"
#include "call/paths.h"
#include "journal/txn_rows.h"
#include "session/housekeep.h"
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

#define POINT(field) offsetof(struct ckpt_record, field)

static const struct field point_totals[] = {
	{ "added", FIELD_UINT64, POINT(added), "objects that are new" },
	{ "changed", FIELD_UINT64, POINT(modified), "objects that differ" },
	{ "deleted", FIELD_UINT64, POINT(deleted), "objects that are gone" },
	{ "bytes", FIELD_UINT64, POINT(bytes), "size of the added and changed files" },
	{ NULL },
};

const struct field point_fields[] = {
	{ "checkpoint", FIELD_INT64, POINT(seq), "its number" },
	{ "time", FIELD_TIME, POINT(time_ns), "when it was made" },
	{ "cause", FIELD_STRING, POINT(cause), "request, call, rule, interval, …" },
	{ "of", FIELD_INT64, POINT(target),
	  "the checkpoint that a rollback or restore was about", FIELD_NULL_NEG },
	{ "named", FIELD_BOOL, POINT(named), "a person asked for it" },
	{ "command", FIELD_STRING, POINT(command), "what was about to run",
	  FIELD_CAN_NULL },
	{ "note", FIELD_STRING, POINT(note), "what somebody wrote about it",
	  FIELD_CAN_NULL },
	{ "changes", FIELD_OBJECT, 0, "against the checkpoint before it",
	  .fields = point_totals },
	{ NULL },
};

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

static int check_checkpoint(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct checkpoint_req *rq = req;

	(void)ctx;
	if (rq->message && strlen(rq->message) > NOTE_MAX)
		return err_set(e, ERR_USAGE, "--message: longer than %d bytes", NOTE_MAX);
	return 0;
}

static int op_checkpoint(struct verb_call *c, const void *req, void *result,
			 struct err *e)
{
	const struct checkpoint_req *rq = req;
	/* Those that the inside asks for are thinned out like others. */
	const struct ckpt_wish w = { .cause = c->ctx->only ? "agent" : "request",
				     .note = rq->message,
				     .named = !c->ctx->only };
	struct checkpoint_res *res = result;
	const struct ckpt_record *made;
	struct timeline *line = NULL;
	int64_t began = now_us();
	int r = timeline_open(c->h, &c->t, true, &line, e);

	if (r == 0)
		r = timeline_take(line, &w, &made, e);
	if (r == 0 && !made)
		r = timeline_adopt(line, &w, e);
	if (r >= 0) {
		const struct ckpt_records *all = timeline_all(line);

		res->none = !made;
		res->noted = r > 0 && rq->message;
		res->paused_us = timeline_paused_us(line);
		res->took_us = now_us() - began;
		res->last = all->n ? all->v[all->n - 1].seq : 0;
		if (made)
			copy_record(made, &res->point);
	}
	timeline_close(line);
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

static json_t *new_point(const void *at)
{
	const struct checkpoint_res *res = at;

	return res->none ? json_null() : schema_write(point_fields, &res->point);
}

#define RES(field) offsetof(struct checkpoint_res, field)

static const struct field checkpoint_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "checkpoint", FIELD_OBJECT, 0, "null: nothing has changed since the last one",
	  FIELD_CAN_NULL, point_fields, .make = new_point },
	{ "last", FIELD_INT64, RES(last), "number of the newest checkpoint" },
	{ "noted", FIELD_BOOL, RES(noted), "the newest one has got the note" },
	{ "paused_us", FIELD_INT64, RES(paused_us),
	  "how long the processes were stopped" },
	{ "took_us", FIELD_INT64, RES(took_us), "how long it took in all" },
	{ NULL },
};

static void checkpoint_free(void *result)
{
	struct checkpoint_res *res = result;

	ckpt_record_free(&res->point);
	txn_facts_free(&res->txn);
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
	.check = check_checkpoint,
	.request_size = sizeof(struct checkpoint_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN,
	.states = &states_of_timeline,
	.effect = EFFECT_STORE,
	.inside = INSIDE_ASKS,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_checkpoint,
	.result_size = sizeof(struct checkpoint_res),
	.result = checkpoint_fields,
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

/* Refuses a path that was never there: a slip of the user is an error, and nothing is done. */
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

static int check_restore(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct restore_req *rq = req;
	int64_t seq;

	(void)ctx;
	if (rq->from)
		return point_parse(rq->from, "--from", &seq, e);
	err_set(e, ERR_USAGE, "restore: --from N is missing");
	return err_hint(e, "stet log lists the checkpoints");
}

static int op_restore(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct restore_req *rq = req;
	struct restore_res *res = result;
	struct timeline *line = NULL;
	char **paths = NULL, *s;
	int r = point_parse(rq->from, "--from", &res->from, e);

	for (size_t i = 0; r == 0 && rq->paths[i]; i++) {
		r = op_ctx_path(c->ctx, rq->paths[i], &s, e);
		if (r == 0)
			strv_push(&paths, s);
	}
	if (r == 0)
		housekeep_stop(c->h, c->t.rec.id);
	if (r == 0)
		r = timeline_open(c->h, &c->t, true, &line, e);
	if (r == 0)
		r = check_known(line, rq, paths, &c->t.rec, e);
	if (r == 0)
		r = timeline_go(line, res->from, (const char *const *)paths, &res->done,
				e);
	housekeep_again(c->h, &c->t);
	timeline_close(line);
	strv_free(paths);
	return r;
}

#undef RES
#define RES(field) offsetof(struct restore_res, field)

static const struct field restore_fields[] = {
	FIELD_OF_TXN(RES(txn)),
	{ "from", FIELD_INT64, RES(from), "the checkpoint that they were taken from" },
	{ "before", FIELD_INT64, RES(done.before), "checkpoint of the state before" },
	{ "after", FIELD_INT64, RES(done.after),
	  "checkpoint of the state after; null: nothing differed", FIELD_NULL_0 },
	{ NULL },
};

static void restore_free(void *res)
{
	txn_facts_free(&((struct restore_res *)res)->txn);
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
	.check = check_restore,
	.request_size = sizeof(struct restore_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN,
	.states = &states_of_timeline,
	.effect = EFFECT_STORE,
	.inside = INSIDE_ASKS,
	.flags = VERB_JSON | VERB_QUIET | VERB_TXN_FIRST,
	.run = op_restore,
	.result_size = sizeof(struct restore_res),
	.result = restore_fields,
	.free = restore_free,
};
