/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "audit/read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "journal/txn_rows.h"
#include "session/json.h"
#include "txn/end.h"
#include "txn/home.h"

#define AT(field) offsetof(struct audit_req, field)

static const struct verb_opt opts[] = {
	{ "follow", 'f', OPT_FLAG, NULL, "wait for more, and show it as it comes",
	  AT(follow) },
	{ NULL },
};

static const struct verb_arg args[] = {
	{ "TX|verify", ARG_TXN, false, false, AT(what) },
	{ NULL },
};

static void complain(void *arg, uint64_t line, const char *what)
{
	struct audit_res *res = arg;

	strv_push(&res->wrong,
		  line ? xasprintf("line %" PRIu64 " %s", line, what) : xstrdup(what));
}

/* Which transactions the books know the beginning of. */
struct known {
	int64_t first; /* what was before it has gone with the oldest volumes */
	int64_t *v;
	size_t n;
	struct audit_res *res;
};

static int64_t begun(const struct audit_line *l)
{
	const char *p = l->sound ? strstr(l->text, "\"event\":\"begin\",\"txn\":\"t")
				 : NULL;

	return p ? strtoll(p + strlen("\"event\":\"begin\",\"txn\":\"t"), NULL, 10) : 0;
}

static uint64_t number_of(const char *fields, const char *key)
{
	const char *p = strstr(fields, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* Quotes within a word are escaped: these words are nobody's but ours. */
static uint64_t counted(const struct audit_line *l)
{
	const char *p = l->sound ? strstr(l->text, "\"event\":\"folded\",") : NULL;

	return p ? number_of(p, ",\"count\":") + number_of(p, ",\"exits\":") : 0;
}

static int look_up(void *arg, struct txn_record *r, struct err *e)
{
	struct known *k = arg;

	(void)e;
	/* Ascending, since that is how they were numbered; the journal's go down. */
	while (k->n && k->v[k->n - 1] > r->id)
		k->n--;
	if (r->id < k->first)
		return 1;
	if (!k->n || k->v[k->n - 1] != r->id)
		strv_push(
			&k->res->wrong,
			xasprintf(
				"the journal has t%lld, the books have no beginning of it",
				(long long)r->id));
	return 0;
}

/* Called for the first transaction that there is. */
static int no_books(void *arg, struct txn_record *r, struct err *e)
{
	(void)r;
	(void)e;
	complain(arg, 0, "there are no books, and the journal has transactions");
	return 1;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* What was cut off together with the head shows in the journal. */
static int compare_journal(struct home *h, struct audit_res *res, struct err *e)
{
	struct known k = { .res = res };
	struct audit_reader *r = NULL;
	struct audit_line l;
	bool whole = true;
	int64_t id;
	int x;

	audit_reader_open(h->dir, &r);
	if (!r)
		return journal_txn_each(h->journal, JOURNAL_ALL, no_books, res, e) < 0
			       ? -1
			       : 0;
	while (audit_read(r, &l) > 0) {
		if (l.number == 1)
			whole = l.seq <= 1;
		res->folded += counted(&l);
		id = begun(&l);
		if (!id)
			continue;
		if ((k.n & (k.n - 1)) == 0)
			k.v = xrealloc(k.v, (k.n ? 2 * k.n : 1) * sizeof(*k.v));
		k.v[k.n++] = id;
	}
	audit_reader_close(r);
	if (k.n)
		qsort(k.v, k.n, sizeof(*k.v), by_number);
	if (!whole)
		k.first = k.n ? k.v[0] : INT64_MAX;
	x = journal_txn_each(h->journal, JOURNAL_ALL, look_up, &k, e);
	free(k.v);
	return x < 0 ? -1 : 0;
}

static void audit_free(void *result)
{
	struct audit_res *res = result;

	audit_reader_close(res->reader);
	free(res->only);
	strv_free(res->wrong);
	*res = (struct audit_res){ 0 };
}

static int verify(struct home *h, struct audit_res *res, struct err *e)
{
	res->verify = true;
	if (audit_verify(h->dir, complain, res, &res->records, e) == 0 &&
	    compare_journal(h, res, e) == 0)
		return 0;
	audit_free(res);
	return -1;
}

static int open_books(struct op_ctx *ctx, struct home *h, const struct audit_req *rq,
		      struct audit_res *res, struct err *e)
{
	struct txn t = { .lock = -1 };
	int r;

	if (rq->what) {
		if (op_ctx_txn(ctx, rq->what, &t, e) < 0)
			return -1;
		res->only = xasprintf(",\"txn\":\"t%lld\",", (long long)t.rec.id);
		txn_close(&t);
	}
	/* So that there is something to wait at. */
	if (rq->follow && rq->common.json_file) {
		err_set(e, ERR_USAGE,
			"--json-file: a file is written when all is known, and --follow has no "
			"end");
		return err_hint(e, "stet audit --follow --json-fd N");
	}
	if (rq->follow)
		home_books(h);
	r = audit_reader_open(h->dir, &res->reader);
	if (r == 0 || r == -ENOENT)
		return 0;
	audit_free(res);
	return err_sys(e, r, "cannot open %s/" AUDIT_LOG, h->dir);
}

int op_audit(struct op_ctx *ctx, const void *req, void *result, struct err *e)
{
	const struct audit_req *rq = req;
	struct home *h;

	if (op_ctx_look(ctx, &h, e) < 0)
		return -1;
	if (rq->what && strcmp(rq->what, "verify") == 0)
		return verify(h, result, e);
	return open_books(ctx, h, rq, result, e);
}

bool audit_wants(const struct audit_res *res, const struct audit_line *l)
{
	return !res->only || !l->seq || strstr(l->text, res->only);
}

static json_t *audit_json(const void *result)
{
	const struct audit_res *res = result;
	json_t *o, *a;
	size_t i;

	if (!res->verify)
		return NULL;
	o = json_result();
	a = json_array();
	for (i = 0; res->wrong && res->wrong[i]; i++)
		json_array_append_new(a, json_string(res->wrong[i]));
	json_object_set_new(o, "records", json_integer((json_int_t)res->records));
	json_object_set_new(o, "folded", json_integer((json_int_t)res->folded));
	json_object_set_new(o, "wrong", a);
	return o;
}

static int audit_status(const void *req, const void *res)
{
	(void)req;
	return ((const struct audit_res *)res)->wrong ? ERR_CORRUPT : 0;
}

const struct verb verb_audit = {
	.name = "audit",
	.summary = "show what was executed and what was done, or verify the records",
	.description =
		"Shows every command that was executed in transactions, with its verdict, how "
		"processes ended (Linux 6.15 and later tell), and every operation on "
		"transactions: beginning, end, commit, rollback, undo, redo. "
		"With TX only those of one transaction. What a process was started by is shown by "
		"indentation, and as PID<PARENT; with --follow by the latter alone. Secrets "
		"in arguments are covered up before they are written.\n"
		"\n"
		"The records are lines of JSON in audit.jsonl in the state directory, which "
		"commands inside cannot see. Each holds the hash of the one before it. stet audit "
		"verify finds edits, missing and exchanged lines and a missing end, and compares "
		"with the journal; the exit status is 7 if something is wrong. It cannot find a "
		"forgery by somebody who rewrites all of it with your rights.\n"
		"\n"
		"A file of 32 MB is put aside as audit-N.jsonl, N being its last record; eight of "
		"them are kept. Where the records begin that are left is in audit.anchor.\n"
		"\n"
		"A command that is repeated in the same way is told a hundred times a minute and "
		"counted after that, and so is all that a run executes beyond 32 MB of records: "
		"no flood pushes out what is older. Records of the event folded hold the "
		"numbers, and stet audit verify adds them up.\n"
		"\n"
		"With --json the records are written as they are, one a line.\n"
		"\n"
		"  stet audit t3\n"
		"  stet audit --follow --json\n"
		"  stet audit verify",
	.opts = opts,
	.args = args,
	.flags = VERB_JSON,
	.request_size = sizeof(struct audit_req),
	.result_size = sizeof(struct audit_res),
	.run = op_audit,
	.json = audit_json,
	.status = audit_status,
	.free = audit_free,
};
