/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "print/run.h"
#include "print/show.h"
#include "verbs/explore.h"
#include "verbs/run.h"

static void headline(struct buf *b, const struct run_res *res)
{
	buf_adds(b, "stet: ");
	if (res->fate != RUN_DROPPED)
		buf_addf(b, "t%lld %s: ", (long long)res->txn.rec.id,
			 run_fate_name(res->fate));
	show_totals(b, &res->totals);
	buf_adds(b, " in ");
	show_duration(b, res->run.run_us);
	if (res->run.reason == RUN_TIMEOUT)
		buf_adds(b, "; time limit reached");
	else if (res->run.reason == RUN_LIMIT) {
		buf_adds(b, "; ");
		limit_describe(&res->run.hit, b);
	} else if (res->run.reason == RUN_SIGNAL || res->run.reason == RUN_ERROR)
		buf_addf(b, "; ended by signal %d (%s)", res->run.signal,
			 strsignal(res->run.signal));
	else if (res->run.reason == RUN_POLICY)
		buf_adds(b, "; ended by policy");
	else if (res->run.status && !res->run.exec_errno)
		buf_addf(b, "; exit status %d", res->run.status);
	buf_addc(b, '\n');
}

/* Says so in the words of a shell. */
static void not_executed(struct buf *b, const char *name, const struct run_result *r)
{
	buf_adds(b, *name ? "stet: " : "stet: ''");
	text_quote(b, name, strlen(name));
	buf_addf(b, ": %s\n",
		 r->exec_errno == ENOENT && !strchr(name, '/') ? "command not found"
							       : strerror(r->exec_errno));
}

static void trouble(struct buf *b, const struct run_result *r)
{
	buf_adds(b, "stet: ");
	text_escape(b, r->trouble.msg, strlen(r->trouble.msg));
	buf_addc(b, '\n');
}

void note_project(struct buf *b, enum project_policy p, const char *was)
{
	if (p > PROJECT_ALLOWED)
		buf_addf(
			b,
			"stet: this project's .stet.yaml %s: it %s not in force; read it, "
			"then: stet allow\n",
			p == PROJECT_CHANGED ? "has changed" : "is not allowed yet", was);
}

void note_not_copied(struct buf *b, struct console *c, const struct run_res *res)
{
	if (!res->not_copied)
		return;
	buf_adds(b, "stet: ");
	show_typed(b, c, res->not_copied);
	buf_adds(
		b,
		" belongs to another owner or group and was not copied into the layer: inside, "
		"a write to it fails with \"Value too large for defined data type\" (EOVERFLOW). "
		"Make it yours (chown, chgrp), or leave it out of the transaction: stet run "
		"--write-through ");
	show_typed(b, c, res->not_copied);
	buf_addc(b, '\n');
}

static void summary(struct buf *b, const struct console *c, const struct run_res *res)
{
	long long id = res->txn.rec.id;
	size_t i, shown = res->ntops < RUN_TOPS ? res->ntops : RUN_TOPS;

	headline(b, res);
	if (res->fate == RUN_DROPPED)
		return;
	for (i = 0; i < shown; i++) {
		const struct run_top *t = &res->tops[i];

		show_change(b, c, res->txn.rec.workspace, t->letter, t->path, NULL,
			    t->dir, t->below, t->hidden ? "hidden on the host" : NULL);
	}
	if (res->ntops > shown)
		buf_addf(b, "  … and %zu more: stet diff t%lld\n", res->ntops - shown,
			 id);
	if (res->txn.rec.neffects) {
		buf_adds(b, "  not undoable: ");
		show_effects(b, c, &res->txn.rec);
		buf_addc(b, '\n');
	}
	if (res->in_between)
		buf_addf(b,
			 "  what it was in between: stet log t%lld    throw away: stet "
			 "rollback t%lld\n",
			 id, id);
	else if (res->fate == RUN_PENDING)
		buf_addf(
			b,
			"  look: stet diff t%lld    keep: stet commit t%lld    throw away: "
			"stet rollback t%lld\n",
			id, id, id);
	else if (!res->txn.final)
		buf_addf(b, "  take it back: stet undo t%lld\n", id);
	else if (res->txn.rec.state == TXN_ROLLED_BACK)
		buf_addf(b, "  look at what it was: stet diff t%lld\n", id);
}

int print_run(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct run_req *rq = req;
	const struct run_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)e;
	if (res->run.lost_errno)
		buf_addf(&b, "stet: output of the command was lost: %s\n",
			 strerror(res->run.lost_errno));
	if (res->run.reason == RUN_ERROR)
		trouble(&b, &res->run);
	if (res->run.exec_errno)
		not_executed(&b, res->txn.rec.argv[0], &res->run);
	if (res->run.reason == RUN_POLICY)
		buf_addf(&b, "stet: ended by %s%s%s\n", res->run.gate.rule,
			 *res->run.gate.why ? ": " : "", res->run.gate.why);
	if (*res->no_point)
		buf_addf(&b, "stet: no checkpoint before what was risky: %s\n",
			 res->no_point);
	if (!rq->common.quiet) {
		summary(&b, c, res);
		note_project(&b, res->project, "was");
		note_not_copied(&b, c, res);
	} else if (res->run.reason == RUN_TIMEOUT) {
		buf_adds(&b, "stet: time limit reached\n");
	} else if (res->run.reason == RUN_LIMIT) {
		buf_adds(&b, "stet: ");
		limit_describe(&res->run.hit, &b);
		buf_addc(&b, '\n');
	}
	show_flush(c, &b);
	return 0;
}

int print_explore(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct explore_req *rq = req;
	const struct explore_res *res = result;
	const char *shell = op_ctx_env(c->ctx, "SHELL");
	long long id = res->txn.rec.id;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)e;
	if (res->run.reason == RUN_ERROR)
		trouble(&b, &res->run);
	if (res->run.exec_errno)
		not_executed(&b,
			     rq->argv ? rq->argv[0]
			     : shell  ? shell
				      : "/bin/sh",
			     &res->run);
	if (!rq->common.quiet && res->was_copy)
		buf_addf(&b, "stet: left the copy of t%lld; nothing of it is kept\n", id);
	else if (!rq->common.quiet)
		buf_addf(
			&b,
			"stet: left t%lld, still pending    look: stet diff t%lld    keep: stet "
			"commit t%lld    throw away: stet rollback t%lld\n",
			id, id, id, id);
	show_flush(c, &b);
	return 0;
}
