/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "print/print.h"
#include "print/run.h"
#include "print/show.h"
#include "verbs/exec.h"

/* How the command, or the check that failed, ended. */
static void show_how(struct buf *b, const struct run_result *r)
{
	if (r->reason == RUN_SIGNAL)
		buf_addf(b, "ended by signal %d (%s)", r->signal, strsignal(r->signal));
	else
		buf_addf(b, "exit status %d", r->status);
}

static void show_why(struct buf *b, const struct exec_res *res)
{
	const struct run_result *r = &res->run.run;
	const struct exec_check *last = res->nchecks ? &res->checks[res->nchecks - 1]
						     : NULL;

	if (last && res->reason != EXEC_DONE && !res->run.refusal.kind) {
		buf_adds(b, "check ");
		text_quote(b, last->command, strlen(last->command));
		buf_adds(b, ": ");
	}
	if (res->run.refusal.kind)
		text_escape(b, res->run.refusal.msg, strlen(res->run.refusal.msg));
	else if (res->reason == EXEC_POLICY && r->reason == RUN_POLICY)
		buf_addf(b, "ended by rule %s: %s", r->gate.rule, r->gate.why);
	else if (res->reason == EXEC_TIMEOUT)
		buf_adds(b, "time limit reached");
	else if (res->reason == EXEC_LIMIT)
		limit_describe(&r->hit, b);
	else if (r->no_cwd)
		buf_addf(b, "the working directory cannot be entered: %s",
			 strerror(r->exec_errno));
	else if (r->exec_errno) {
		text_quote(b, res->run.txn.rec.argv[0], strlen(res->run.txn.rec.argv[0]));
		buf_addf(b, " cannot be executed: %s", strerror(r->exec_errno));
	} else
		show_how(b, r);
}

static void show_failure(struct buf *b, const struct console *c,
			 const struct exec_res *res)
{
	const struct run_res *run = &res->run;
	long long id = run->txn.rec.id;

	buf_adds(b, "stet: ");
	if (run->fate == RUN_DROPPED)
		buf_adds(b, "nothing changed: ");
	else
		buf_addf(b, "t%lld %s: ", id, run_fate_name(run->fate));
	show_why(b, res);
	buf_addc(b, '\n');
	show_notes(b, c, run->txn.rec.workspace, &run->commit.conflicts);
	show_notes(b, c, run->txn.rec.workspace, &run->commit.denied);
	if (res->reason == EXEC_POLICY)
		show_notes(b, c, run->txn.rec.workspace, &run->commit.risks);
	if (run->fate == RUN_ROLLED_BACK && run->refusal.hint[0])
		buf_addf(b, "  %s\n", run->refusal.hint);
	if (run->fate == RUN_PENDING)
		buf_addf(
			b,
			"  look: stet diff t%lld    keep: stet commit t%lld    throw away: "
			"stet rollback t%lld\n",
			id, id, id);
}

/* Is the end of the command all that there is to say? Then the exit status says it. */
static bool is_plain_end(const struct exec_res *res)
{
	return res->reason == EXEC_DONE || res->reason == EXEC_EXIT ||
	       res->reason == EXEC_SIGNAL;
}

int print_exec(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct verb_common *common = req;
	const struct exec_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)e;
	if (res->command.lost_errno)
		buf_addf(&b, "stet: output of the command was lost: %s\n",
			 strerror(res->command.lost_errno));
	if (common->quiet && is_plain_end(res))
		;
	else if (res->reason != EXEC_DONE)
		show_failure(&b, c, res);
	else if (res->run.fate == RUN_COMMITTED) {
		buf_addf(&b, "stet: t%lld committed: ", (long long)res->run.txn.rec.id);
		show_totals(&b, &res->run.totals);
		buf_addc(&b, '\n');
	}
	if (!common->quiet) {
		note_project(&b, res->run.project, "was");
		note_not_copied(&b, c, &res->run);
	}
	show_flush(c, &b);
	return 0;
}
