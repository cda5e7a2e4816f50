/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/dialog.h"

#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "print/commit.h"
#include "print/complaint.h"
#include "print/show.h"
#include "print/term.h"
#include "review/diff.h"
#include "review/rollback.h"
#include "verbs/fork.h"
#include "verbs/run.h"
#include "verbs/verbs.h"

/* --- what is to become of a transaction --- */

/* Asks until there is a decision. Without one the transaction stays pending. */
static void ask_fate(struct cli *c, const struct run_res *res)
{
	enum { COMMIT, DIFF, KEEP, ROLLBACK };
	static const char *const words[] = { [COMMIT] = "commit",
					     [DIFF] = "diff",
					     [KEEP] = "keep",
					     [ROLLBACK] = "rollback",
					     NULL };
	AUTO_FREE char *ref = xasprintf("t%lld", (long long)res->txn.rec.id);
	struct commit_req commit = { .txn = ref };
	struct diff_req diff = { .txn = ref };
	struct rollback_req rollback = { .txn = ref };

	/* Input that was typed for the command must not decide about its work. */
	tcflush(STDIN_FILENO, TCIFLUSH);
	for (;;) {
		switch (term_ask("[c]ommit  [d]iff  [k]eep  [r]oll back ? ", words)) {
		case COMMIT:
			if (cli_verb(c, &verb_commit, &commit) == 0)
				return;
			break;
		case DIFF:
			cli_verb(c, &verb_diff, &diff);
			break;
		case ROLLBACK:
			cli_verb(c, &verb_rollback, &rollback);
			return;
		default:
			return;
		}
	}
}

static bool commit_all_the_same(void)
{
	static const char *const words[] = { "yes", "no", NULL };

	return term_ask("Commit all the same? [y]es  [n]o ? ", words) == 0;
}

/* The options asked for a commit that was refused; a person may still say yes. */
static int run_refused(struct cli *c, const struct run_res *res)
{
	AUTO_FREE char *ref = xasprintf("t%lld", (long long)res->txn.rec.id);
	struct commit_req commit = { .txn = ref, .accept_risky = true };

	tcflush(STDIN_FILENO, TCIFLUSH);
	if (explain_refusal(&c->con, &res->txn.rec, NULL, &res->commit, &res->refusal) &&
	    commit_all_the_same() && cli_verb(c, &verb_commit, &commit) == 0)
		return res->run.status;
	return RUN_STATUS_AROUND;
}

static int run_done(struct cli *c, const struct run_req *rq, const struct run_res *res)
{
	fflush(stderr);
	if (res->refusal.kind)
		return run_refused(c, res);
	if (!rq->common.quiet && res->fate == RUN_PENDING && !res->in_between &&
	    !res->decided && c->con.tty && isatty(STDIN_FILENO))
		ask_fate(c, res);
	/* The command's own status, whatever was answered. */
	return -1;
}

int dialog_done(struct cli *c, const struct verb *v, const void *req, const void *res)
{
	const struct fork_res *fork = res;

	if (v == &verb_run)
		return run_done(c, req, res);
	if (v == &verb_fork && fork->ran)
		return run_done(c, &fork->rq, &fork->run);
	return -1;
}

/* --- what a verb refused --- */

int dialog_refused(struct cli *c, const struct verb *v, const void *req, const void *res,
		   const struct err *e)
{
	static const struct {
		const struct verb *verb;
		explain_fn *explain;
	} each[] = {
		{ &verb_commit, explain_commit },
		{ &verb_rollback, explain_rollback },
		{ &verb_undo, explain_undo },
		{ &verb_redo, explain_redo },
	};
	struct commit_req again;
	size_t i = 0;

	while (i < ARRAY_SIZE(each) && each[i].verb != v)
		i++;
	if (i == ARRAY_SIZE(each)) {
		print_complaint(e, true);
		return -1;
	}
	if (!each[i].explain(&c->con, req, res, e) || v != &verb_commit ||
	    !commit_all_the_same())
		return -1;
	again = *(const struct commit_req *)req;
	again.accept_risky = true;
	return cli_verb(c, v, &again);
}

/* --- a command that a rule asks about --- */

/* So much of a command is shown. */
enum { WORDS_MAX = 40, WORD_MAX = 200 };

static void show_command(struct buf *b, const struct exec_facts *f)
{
	size_t n = f->argc < WORDS_MAX ? f->argc : WORDS_MAX;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(f->argv[i]);
		AUTO_FREE char *part = NULL;
		char *word[2] = { NULL, NULL };

		if (i)
			buf_addc(b, ' ');
		word[0] = part = xstrndup(f->argv[i], len < WORD_MAX ? len : WORD_MAX);
		show_argv(b, word);
		if (len > WORD_MAX)
			buf_adds(b, "…");
	}
	if (f->argc > n)
		buf_addf(b, " … and %zu more", f->argc - n);
}

enum consent dialog_consent(void *arg, const struct consent_question *q)
{
	enum { YES, NO, ALWAYS, DIFF };
	static const char *const words[] = {
		[YES] = "yes", [NO] = "no", [ALWAYS] = "always", [DIFF] = "diff", NULL
	};
	struct cli *c = arg;
	const struct verdict *v = q->verdict;
	AUTO_FREE char *ref = xasprintf("t%lld", (long long)q->txn);
	struct diff_req diff = { .txn = ref };
	AUTO_BUF struct buf b = BUF_INIT;

	/* The command may have left the line unfinished, and its own modes. */
	buf_adds(&b, "\r\nstet: may this run?  ");
	show_command(&b, q->facts);
	buf_addf(&b, "\n  rule %s", v->rule ? v->rule : "?");
	if (v->why)
		buf_addf(&b, ": %s", v->why);
	if (v->hint)
		buf_addf(&b, "\n  hint: %s", v->hint);
	buf_addc(&b, '\n');
	fputs(buf_str(&b), stderr);
	tcflush(STDIN_FILENO, TCIFLUSH);
	for (;;) {
		switch (term_ask_between(
			"  [y]es  [n]o  [a]lways in this transaction  [d]iff ? ", words,
			q->until)) {
		case YES:
			return CONSENT_YES;
		case ALWAYS:
			return CONSENT_ALWAYS;
		case DIFF:
			cli_verb(c, &verb_diff, &diff);
			break;
		default:
			return CONSENT_NO;
		}
	}
}
