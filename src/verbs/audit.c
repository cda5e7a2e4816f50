/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "audit/read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "call/call.h"
#include "journal/txn_rows.h"
#include "txn/home.h"

#define AT(field) offsetof(struct audit_req, field)

static const struct verb_opt opts[] = {
	{ "follow", 'f', OPT_FLAG, NULL, "wait for more, and show it as it comes",
	  AT(follow) },
	{ NULL },
};

static const char *const words[] = { "verify", NULL };

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

/* A file of the result is written when all is known, and following has no end. */
static int check(const struct op_ctx *ctx, const void *req, struct err *e)
{
	const struct audit_req *rq = req;

	(void)ctx;
	if (!rq->follow || !rq->common.json_file)
		return 0;
	err_set(e, ERR_USAGE,
		"--json-file: a file is written when all is known, and --follow has no "
		"end");
	return err_hint(e, "stet audit --follow --json-fd N");
}

static int open_books(struct verb_call *c, const struct audit_req *rq,
		      struct audit_res *res, struct err *e)
{
	int r;

	if (c->t.rec.id)
		res->only = xasprintf(",\"txn\":\"t%lld\",", (long long)c->t.rec.id);
	/* So that there is something to wait at. */
	if (rq->follow)
		home_books(c->h);
	r = audit_reader_open(c->h->dir, &res->reader);
	if (r == 0 || r == -ENOENT)
		return 0;
	audit_free(res);
	return err_sys(e, r, "cannot open %s/" AUDIT_LOG, c->h->dir);
}

static int op_audit(struct verb_call *c, const void *req, void *result, struct err *e)
{
	const struct audit_req *rq = req;

	if (rq->what && strcmp(rq->what, words[0]) == 0)
		return verify(c->h, result, e);
	return open_books(c, rq, result, e);
}

/* A line that is no record belongs to every transaction. */
static bool wants(const struct audit_res *res, const struct audit_line *l)
{
	return !res->only || !l->seq || strstr(l->text, res->only);
}

int audit_next(const struct audit_res *res, struct audit_line *l, struct err *e)
{
	int r = 0;

	while (res->reader && (r = audit_read(res->reader, l)) > 0)
		if (wants(res, l))
			return 1;
	return r < 0 ? err_sys(e, r, "cannot read the records") : 0;
}

int audit_more(const struct audit_res *res, struct err *e)
{
	int r = audit_wait(res->reader);

	if (r == -EINTR)
		return 0;
	return r < 0 ? err_sys(e, r, "cannot read the records") : 1;
}

static bool streams(const void *res)
{
	return !((const struct audit_res *)res)->verify;
}

static const struct field audit_fields[] = {
	{ "records", FIELD_UINT64, offsetof(struct audit_res, records),
	  "of stet audit verify: how many there are" },
	{ "folded", FIELD_UINT64, offsetof(struct audit_res, folded),
	  "execs and exits that the records only count" },
	{ "wrong", FIELD_STRINGS, offsetof(struct audit_res, wrong),
	  "what is not as it should be" },
	{ NULL },
};

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
	.check = check,
	.request_size = sizeof(struct audit_req),
	.home = HOME_LOOK,
	.target = TARGET_TXN_NAMED,
	.words = words,
	.flags = VERB_JSON,
	.run = op_audit,
	.result_size = sizeof(struct audit_res),
	.result = audit_fields,
	.streams = streams,
	.status = audit_status,
	.free = audit_free,
};
