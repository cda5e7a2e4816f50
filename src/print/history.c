/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "print/checkpoint.h"
#include "print/history.h"
#include "print/print.h"
#include "print/show.h"
#include "review/forget.h"
#include "review/log.h"
#include "review/recover.h"

enum { COLUMNS = 6 };

void show_time(struct buf *b, int64_t ns)
{
	time_t sec = (time_t)(ns / 1000000000);
	char text[64];
	struct tm tm;

	if (localtime_r(&sec, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		buf_adds(b, text);
}

static void cells(const struct op_record *r, struct buf *cell)
{
	buf_addf(&cell[0], "%lld", (long long)r->id);
	show_time(&cell[1], r->done_ns ? r->done_ns : r->begun_ns);
	buf_adds(&cell[2], op_kind_name(r->kind));
	if (r->target)
		buf_addf(&cell[2], " of %lld", (long long)r->target);
	if (r->state == OP_REVERSED)
		buf_adds(&cell[2], " (conflict: did not happen)");
	else if (r->state != OP_DONE)
		buf_adds(&cell[2], " (unfinished)");
	else if (r->undone)
		buf_adds(&cell[2], " (undone)");
	buf_addf(&cell[3], "t%lld", (long long)r->txn);
	if (r->changes)
		buf_addf(&cell[4], "%llu", (unsigned long long)r->changes);
	else
		buf_adds(&cell[4], "-");
	if (r->message)
		text_escape(&cell[5], r->message, strlen(r->message));
}

int print_log(struct console *c, const void *req, const void *result, struct err *e)
{
	static const char *const heads[COLUMNS] = { "OP", "TIME",    "WHAT",
						    "TX", "CHANGES", "MESSAGE" };
	const struct log_res *res = result;
	AUTO_FREE struct buf *rows = xcalloc((res->n + 1) * COLUMNS, sizeof(*rows));
	size_t i;

	(void)req;
	(void)e;
	if (res->timeline)
		return print_timeline(c, res);
	if (!res->n) {
		fputs("No operations.\n", c->out);
		return 0;
	}
	for (i = 0; i < COLUMNS; i++)
		buf_adds(&rows[i], heads[i]);
	for (i = 0; i < res->n; i++)
		cells(&res->v[i], &rows[(i + 1) * COLUMNS]);
	show_table(c, rows, res->n + 1, COLUMNS);
	return 0;
}

int print_forget(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct forget_res *res = result;
	unsigned long long n = res->done.transactions;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	if (n) {
		buf_addf(&b, "%s %llu transaction%s, ",
			 res->dry_run ? "would forget" : "forgot", n, n == 1 ? "" : "s");
		text_size(&b, res->done.bytes);
	} else {
		buf_adds(&b, "nothing to forget");
	}
	buf_adds(&b, "; history holds ");
	text_size(&b, res->done.held);
	buf_addc(&b, '\n');
	show_flush(c, &b);
	return 0;
}

int print_recover(struct console *c, const void *req, const void *result, struct err *e)
{
	unsigned n = ((const struct recover_res *)result)->operations;

	(void)req;
	(void)e;
	if (n)
		fprintf(c->out, "recovered %u operation%s; see: stet log\n", n,
			n == 1 ? "" : "s");
	else
		fputs("nothing to recover\n", c->out);
	return 0;
}

int print_check(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct check_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i, n = strv_len(res->wrong);

	(void)req;
	(void)e;
	for (i = 0; i < n; i++) {
		text_escape(&b, res->wrong[i], strlen(res->wrong[i]));
		buf_addc(&b, '\n');
	}
	buf_addf(&b, "checked %u transaction%s: ", res->transactions,
		 res->transactions == 1 ? "" : "s");
	if (n)
		buf_addf(&b, "%zu thing%s wrong\n", n, n == 1 ? "" : "s");
	else
		buf_adds(&b, "all well\n");
	show_flush(c, &b);
	return 0;
}
