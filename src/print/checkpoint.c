/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "print/checkpoint.h"
#include "print/history.h"
#include "print/print.h"
#include "print/show.h"
#include "review/checkpoint.h"
#include "review/log.h"
#include "review/show.h"
#include "verbs/fork.h"

enum { COLUMNS = 5 };

static void changes(struct buf *b, const struct ckpt_record *r)
{
	buf_addf(b, "+%llu ~%llu -%llu", (unsigned long long)r->added,
		 (unsigned long long)r->modified, (unsigned long long)r->deleted);
	if (r->bytes) {
		buf_addc(b, ' ');
		text_size(b, r->bytes);
	}
}

static void cause(struct buf *b, const struct ckpt_record *r)
{
	text_escape(b, r->cause, strlen(r->cause));
	if (r->target >= 0)
		buf_addf(b, " %s %lld", strcmp(r->cause, "restore") == 0 ? "from" : "to",
			 (long long)r->target);
}

/* The command it was made before, and what somebody (or a rule) had to say about it. */
static void words(struct buf *b, const struct ckpt_record *r)
{
	if (r->command)
		text_escape(b, r->command, strlen(r->command));
	if (!r->note)
		return;
	buf_adds(b, r->command ? "  (" : "");
	text_escape(b, r->note, strlen(r->note));
	buf_adds(b, r->command ? ")" : "");
}

int print_timeline(struct console *c, const struct log_res *res)
{
	static const char *const heads[COLUMNS] = { "N", "TIME", "CAUSE", "CHANGES",
						    "COMMAND, NOTE" };
	size_t n = res->points.n;
	AUTO_FREE struct buf *rows = xcalloc((n + 2) * COLUMNS, sizeof(*rows));
	struct buf *last = &rows[(n + 1) * COLUMNS];

	for (size_t i = 0; i < COLUMNS; i++)
		buf_adds(&rows[i], heads[i]);
	for (size_t i = 0; i < n; i++) {
		const struct ckpt_record *r = &res->points.v[n - 1 - i];
		struct buf *cell = &rows[(i + 1) * COLUMNS];

		buf_addf(&cell[0], "%lld", (long long)r->seq);
		show_time(&cell[1], r->time_ns);
		cause(&cell[2], r);
		changes(&cell[3], r);
		words(&cell[4], r);
	}
	buf_adds(&last[0], "0");
	show_time(&last[1], res->txn.rec.begin_ns);
	buf_adds(&last[2], "begin");
	buf_adds(&last[3], "-");
	show_argv(&last[4], res->txn.rec.argv);
	show_table(c, rows, n + 2, COLUMNS);
	return 0;
}

int print_checkpoint(struct console *c, const void *req, const void *result,
		     struct err *e)
{
	const struct checkpoint_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	if (res->none) {
		buf_addf(&b, "nothing has changed since checkpoint %lld of t%lld%s\n",
			 (long long)res->last, (long long)res->txn.rec.id,
			 res->noted ? ", which has the note now" : "");
	} else {
		buf_addf(&b, "checkpoint %lld of t%lld: ", (long long)res->point.seq,
			 (long long)res->txn.rec.id);
		changes(&b, &res->point);
		buf_addc(&b, '\n');
	}
	show_flush(c, &b);
	return 0;
}

int print_restore(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct restore_res *res = result;

	(void)req;
	(void)e;
	if (!res->done.after)
		fprintf(c->out, "nothing differs there from checkpoint %lld\n",
			(long long)res->from);
	else
		fprintf(c->out,
			"restored from checkpoint %lld of t%lld; take it back: "
			"stet rollback t%lld --to %lld\n",
			(long long)res->from, (long long)res->txn.rec.id,
			(long long)res->txn.rec.id, (long long)res->done.before);
	return 0;
}

int print_fork(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct fork_req *rq = req;
	const struct fork_res *res = result;
	long long id = res->run.txn.rec.id;

	if (res->ran)
		return print_run(c, &res->rq, &res->run, e);
	if (!rq->common.quiet)
		fprintf(c->out, "stet: t%lld is t%lld at checkpoint %lld, pending\n", id,
			(long long)res->from, (long long)res->at);
	return 0;
}

int print_show(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct show_res *res = result;
	const struct ckpt_record *r = res->point;
	AUTO_BUF struct buf b = BUF_INIT;

	show_color(&b, c, "33");
	buf_addf(&b, "checkpoint %lld of t%lld", (long long)res->diff.to,
		 (long long)res->diff.txn.rec.id);
	show_color(&b, c, NULL);
	buf_adds(&b, "\n");
	if (r) {
		buf_adds(&b, "  time     ");
		show_time(&b, r->time_ns);
		buf_adds(&b, "\n  cause    ");
		cause(&b, r);
		buf_adds(&b, "\n  changes  ");
		changes(&b, r);
		if (r->command) {
			buf_adds(&b, "\n  command  ");
			text_escape(&b, r->command, strlen(r->command));
		}
		if (r->note) {
			buf_adds(&b, "\n  note     ");
			text_escape(&b, r->note, strlen(r->note));
		}
		buf_addc(&b, '\n');
	}
	buf_addc(&b, '\n');
	show_flush(c, &b);
	return print_diff(c, req, &res->diff, e);
}
