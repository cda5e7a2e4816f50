/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "call/paths.h"
#include "print/commit.h"
#include "print/complaint.h"
#include "print/show.h"
#include "print/term.h"
#include "review/rollback.h"
#include "review/undo.h"

/* Up to so many paths are written out in a command. */
enum { TYPED = 3 };

static void write_error(struct buf *b)
{
	fflush(stdout);
	fputs(buf_str(b), stderr);
	buf_reset(b);
}

static void word(struct buf *b, struct console *c, const char *text)
{
	AUTO_FREE char *w = xasprintf("%s%s", *text == '-' ? "./" : "", text);

	buf_addc(b, ' ');
	show_typed(b, c, w);
}

static void words(struct buf *b, struct console *c, const char *option, char *const *v)
{
	for (; v && *v; v++) {
		if (option)
			buf_addf(b, " %s", option);
		word(b, c, *v);
	}
}

/* Does the operand name the transaction, and not a path? */
static bool is_name(const struct txn_record *rec, const char *text)
{
	char number[24];

	snprintf(number, sizeof(number), "t%lld", (long long)rec->id);
	return strcmp(text, number) == 0 || strcmp(text, number + 1) == 0 ||
	       (rec->name && strcmp(text, rec->name) == 0);
}

/*
 * Gives the typed words that do not name paths that are to be decided now, or paths below these: a
 * decision about these has just been refused, and must not be part of the advice.
 */
static char **without(struct console *c, char *const *typed, const struct path_notes *n)
{
	char **rest = NULL;

	for (; typed && *typed; typed++)
		if (!op_paths_name(c->ctx, *typed, n))
			strv_push(&rest, xstrdup(*typed));
	return rest;
}

/* Adds the choices of the refused command: the command that decides the rest repeats them. */
static void decided(struct buf *b, struct console *c, const struct txn_record *rec,
		    const char *txn, char *const *paths, char *const *ours,
		    char *const *theirs)
{
	if (txn && !is_name(rec, txn))
		word(b, c, txn);
	words(b, c, NULL, paths);
	words(b, c, "--ours", ours);
	words(b, c, "--theirs", theirs);
}

/* @n: the conflicts that are to be decided now. */
static void decided_commit(struct buf *b, struct console *c, const struct txn_record *rec,
			   const struct commit_req *rq, const struct path_notes *n)
{
	char **ours, **theirs;

	if (!rq)
		return;
	ours = without(c, rq->ours, n);
	theirs = without(c, rq->theirs, n);
	decided(b, c, rec, rq->txn, rq->paths, ours, theirs);
	strv_free(ours);
	strv_free(theirs);
	if (rq->message) {
		buf_adds(b, " -m");
		word(b, c, rq->message);
	}
	buf_adds(b, rq->merge ? " --merge" : "");
	buf_adds(b, rq->accept_risky ? " --accept-risky" : "");
}

enum { OURS, THEIRS };

static const char *option_for(int side, const struct path_note *n)
{
	return side == THEIRS || n->stuck ? "--theirs" : "--ours";
}

/* "the host wins:  stet commit t3 --theirs a --theirs b"; @given: options given before. For the
 * transaction's side, a path where --ours cannot help gets --theirs. */
static void command(struct buf *b, struct console *c, const char *what, const char *verb,
		    int64_t id, const char *given, int side, const struct path_notes *n)
{
	size_t i;

	buf_addf(b, "%-22s stet %s t%lld%s", what, verb, (long long)id, given);
	for (i = 0; i < n->n && n->n + n->more <= TYPED; i++) {
		buf_addf(b, " %s ", option_for(side, &n->v[i]));
		show_typed(b, c, n->v[i].path);
	}
	if (n->n + n->more > TYPED)
		buf_addf(b, " %s PATH", side == THEIRS ? "--theirs" : "--ours");
	buf_addc(b, '\n');
}

static void explain_path(struct buf *b, const struct path_notes *n)
{
	if (n->n + n->more > TYPED)
		buf_adds(
			b,
			"PATH is a file, a directory or a pattern; repeat the option for "
			"each\n");
}

/* Counts the conflicts that --ours cannot decide. */
static size_t count_stuck(const struct path_notes *n)
{
	size_t stuck = 0;

	for (size_t i = 0; i < n->n; i++)
		stuck += n->v[i].stuck;
	return stuck;
}

static void conflict(struct buf *b, struct console *c, const struct txn_record *rec,
		     const char *given, bool merge, const struct path_notes *n)
{
	long long id = rec->id;

	show_notes(b, c, rec->workspace, n);
	buf_addf(b, "%-22s stet diff t%lld --conflicts\n", "look:", id);
	if (count_stuck(n) < n->n)
		command(b, c, "the transaction wins:", "commit", id, given, OURS, n);
	command(b, c, "the host wins:", "commit", id, given, THEIRS, n);
	if (merge)
		buf_addf(b, "%-22s stet commit t%lld%s --merge\n", "merge text:", id,
			 given);
	explain_path(b, n);
}

bool explain_refusal(struct console *c, const struct txn_record *rec,
		     const struct commit_req *rq, const struct commit_result *r,
		     const struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT, given = BUF_INIT;
	long long id = rec->id;

	decided_commit(&given, c, rec, rq, &r->conflicts);
	if (e->kind == ERR_CONFLICT && r->conflicts.n) {
		print_complaint(e, false);
		/* If it was asked for, these are what could not be merged. */
		conflict(&b, c, rec, buf_str(&given), r->mergeable && !(rq && rq->merge),
			 &r->conflicts);
		write_error(&b);
		return false;
	}
	if (e->kind == ERR_DENIED && r->denied.n) {
		print_complaint(e, true);
		show_notes(&b, c, rec->workspace, &r->denied);
		write_error(&b);
		return false;
	}
	if (e->kind != ERR_DENIED || !r->risks.n) {
		print_complaint(e, true);
		return false;
	}
	print_complaint(e, false);
	show_notes(&b, c, rec->workspace, &r->risks);
	buf_addf(&b, "%-22s stet diff t%lld\n", "look:", id);
	if (!term_can_ask())
		buf_addf(&b, "%-22s stet commit t%lld%s --accept-risky\n",
			 "commit all the same:", id, buf_str(&given));
	write_error(&b);
	return term_can_ask();
}

bool explain_commit(struct console *c, const void *req, const void *result,
		    const struct err *e)
{
	const struct commit_res *res = result;

	return explain_refusal(c, &res->txn.rec, req, &res->done, e);
}

static void totals(struct buf *b, const struct commit_result *r)
{
	struct change_totals t = commit_totals(r);

	t.bytes = 0;
	show_totals(b, &t);
	if (r->merged)
		buf_addf(b, ", %llu merged", (unsigned long long)r->merged);
}

int print_commit(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct commit_res *res = result;
	long long id = res->txn.rec.id;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)req;
	(void)e;
	buf_addf(&b, "t%lld ", id);
	if (res->dry_run) {
		buf_adds(&b, "would be committed: ");
		totals(&b, &res->done);
		buf_adds(&b, res->done.left ? "; the rest would stay pending\n" : "\n");
		if (res->done.denied.n) {
			buf_adds(&b, "denied:\n");
			show_notes(&b, c, res->txn.rec.workspace, &res->done.denied);
		}
		if (res->done.risks.n) {
			buf_adds(&b, "deserve a look first:\n");
			show_notes(&b, c, res->txn.rec.workspace, &res->done.risks);
		}
	} else if (res->kept) {
		buf_adds(&b, "kept: it worked in place, and its snapshot is gone\n");
	} else if (!res->done.op) {
		buf_addf(&b,
			 "has nothing to commit and stays pending; throw it away: stet "
			 "rollback t%lld\n",
			 id);
	} else {
		buf_adds(&b, res->done.left ? "committed in part: " : "committed: ");
		totals(&b, &res->done);
		buf_addf(&b, "; take it back: stet undo t%lld\n", id);
		if (res->done.left) {
			buf_adds(&b, "still pending: ");
			show_totals(&b, &res->left);
			buf_addf(&b, "; look: stet status t%lld\n", id);
		}
	}
	show_flush(c, &b);
	return 0;
}

/* The newest transaction that has committed there since; 0: none is known. */
static int64_t newest_by(const struct path_notes *n)
{
	int64_t by = 0;

	for (size_t i = 0; i < n->n; i++)
		by = n->v[i].by > by ? n->v[i].by : by;
	return by;
}

/* Conflicts, and what decides them. */
static bool explain_replay(struct console *c, const char *verb, const struct undo_req *rq,
			   const struct txn_record *rec, const struct path_notes *n,
			   const struct err *e)
{
	AUTO_BUF struct buf b = BUF_INIT, given = BUF_INIT;
	char **ours, **theirs;

	print_complaint(e, !n->n);
	if (!n->n)
		return false;
	/* A single one may be all that the message says. */
	if (n->n > 1 || strcmp(n->v[0].what, e->msg) != 0)
		show_notes(&b, c, rec->workspace, n);
	ours = without(c, rq->ours, n);
	theirs = without(c, rq->theirs, n);
	decided(&given, c, rec, rq->txn, rq->paths, ours, theirs);
	strv_free(ours);
	strv_free(theirs);
	if (newest_by(n))
		buf_addf(&b, "%-22s stet undo t%lld\n",
			 "take that back first:", (long long)newest_by(n));
	if (!count_stuck(n))
		command(&b, c, "go on all the same:", verb, rec->id, buf_str(&given),
			OURS, n);
	command(&b, c, "the host wins:", verb, rec->id, buf_str(&given), THEIRS, n);
	explain_path(&b, n);
	write_error(&b);
	return false;
}

bool explain_undo(struct console *c, const void *req, const void *result,
		  const struct err *e)
{
	const struct undo_res *res = result;

	return explain_replay(c, "undo", req, &res->txn.rec, &res->done.conflicts, e);
}

bool explain_redo(struct console *c, const void *req, const void *result,
		  const struct err *e)
{
	const struct undo_res *res = result;

	return explain_replay(c, "redo", req, &res->txn.rec, &res->done.conflicts, e);
}

bool explain_rollback(struct console *c, const void *req, const void *result,
		      const struct err *e)
{
	const struct rollback_req *rq = req;
	const struct rollback_res *res = result;
	const struct undo_req as = { .txn = rq->txn,
				     .ours = rq->ours,
				     .theirs = rq->theirs };

	return explain_replay(c, "rollback", &as, &res->txn.rec, &res->conflicts, e);
}

/* For --dry-run: nothing would be refused. */
static int print_would(struct console *c, const struct undo_res *res, const char *what)
{
	unsigned long long n = res->done.changes;

	fprintf(c->out, "t%lld would be %s: %llu step%s, no conflict\n",
		(long long)res->txn.rec.id, what, n, n == 1 ? "" : "s");
	return 0;
}

int print_undo(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct undo_res *res = result;
	long long id = res->txn.rec.id;

	(void)req;
	(void)e;
	if (res->dry_run)
		return print_would(c, res, res->some ? "undone in part" : "undone");
	fprintf(c->out, "t%lld: %s taken back%s%s; do it after all: stet redo t%lld\n",
		id, op_kind_name(res->kind), res->some ? " in part" : "",
		res->txn.rec.state == TXN_FROZEN ? ", pending again" : "", id);
	return 0;
}

int print_redo(struct console *c, const void *req, const void *result, struct err *e)
{
	const struct undo_res *res = result;
	long long id = res->txn.rec.id;

	(void)req;
	(void)e;
	if (res->dry_run)
		return print_would(c, res, "done again");
	fprintf(c->out, "t%lld %s again%s; take it back: stet undo t%lld\n", id,
		res->kind == OP_COMMIT ? "committed" : "rolled back",
		res->some || res->txn.rec.state == TXN_FROZEN ? ", in part" : "", id);
	return 0;
}
