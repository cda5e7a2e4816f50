/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "ops/diff.h"
#include "ops/explore.h"
#include "ops/rollback.h"
#include "ops/run.h"
#include "ops/verbs.h"

static void headline(struct buf *b, const struct run_res *res)
{
	static const char *const fates[] = {
		[RUN_PENDING] = "pending",
		[RUN_ROLLED_BACK] = "rolled back",
		[RUN_DROPPED] = "dropped",
	};

	buf_adds(b, "stet: ");
	if (res->fate != RUN_DROPPED)
		buf_addf(b, "t%lld %s: ", (long long)res->rec.id, fates[res->fate]);
	show_totals(b, &res->totals);
	buf_adds(b, " in ");
	show_duration(b, res->run.run_us);
	if (res->run.reason == RUN_TIMEOUT)
		buf_adds(b, "; time limit reached");
	buf_addc(b, '\n');
}

static void summary(struct buf *b, const struct cli *c, const struct run_res *res)
{
	long long id = res->rec.id;
	size_t i, shown = res->ntops < RUN_TOPS ? res->ntops : RUN_TOPS;

	headline(b, res);
	if (res->fate == RUN_DROPPED)
		return;
	for (i = 0; i < shown; i++) {
		const struct run_top *t = &res->tops[i];

		show_change(b, c, res->rec.workspace, (char)t->kind, t->path, NULL,
			    t->dir, t->below, NULL);
	}
	if (res->ntops > shown)
		buf_addf(b, "  … and %zu more: stet diff t%lld\n", res->ntops - shown,
			 id);
	if (res->rec.neffects) {
		buf_adds(b, "  not undoable: ");
		show_effects(b, c, &res->rec);
		buf_addc(b, '\n');
	}
	if (res->fate == RUN_PENDING)
		buf_addf(b,
			 "  look: stet diff t%lld    throw away: stet rollback t%lld\n",
			 id, id);
	else if (res->fate == RUN_ROLLED_BACK)
		buf_addf(b, "  its data is kept until stet prune\n");
}

static void on_interrupt(int sig)
{
	(void)sig; /* it only has to end the read */
}

/* First letter of the answer, 0 for an empty line, -1 for end of file or Ctrl-C. */
static int answer(void)
{
	struct sigaction act = { .sa_handler = on_interrupt }, old;
	char line[256];
	ssize_t n;

	sigaction(SIGINT, &act, &old);
	n = read(STDIN_FILENO, line, sizeof(line));
	sigaction(SIGINT, &old, NULL);
	if (n <= 0)
		return -1;
	return line[0] == '\n' ? 0 : line[0];
}

static void say(const char *text)
{
	fputs(text, stderr);
	fflush(stderr);
}

/* Asks until there is a decision; keeping is what happens without one. */
static void ask(struct cli *c, const struct run_res *res)
{
	AUTO_FREE char *ref = xasprintf("t%lld", (long long)res->rec.id);
	struct diff_req diff = { .txn = ref };
	struct rollback_req rollback = { .txn = ref };

	/* What was typed for the command must not decide over its work. */
	tcflush(STDIN_FILENO, TCIFLUSH);
	for (;;) {
		say("[c]ommit  [d]iff  [k]eep  [r]oll back ? ");
		switch (answer()) {
		case 'c':
		case 'C':
			say("stet: this version cannot commit yet; keep it, and a later one "
			    "can\n");
			break;
		case 'd':
		case 'D':
			cli_verb(c, &verb_diff, &diff);
			break;
		case 'r':
		case 'R':
			cli_verb(c, &verb_rollback, &rollback);
			return;
		case -1:
			say("\n");
			return;
		case 'k':
		case 'K':
			return;
		default:
			break;
		}
	}
}

int print_run(struct cli *c, const void *req, const void *result, struct err *e)
{
	const struct run_req *rq = req;
	const struct run_res *res = result;
	AUTO_BUF struct buf b = BUF_INIT;

	(void)e;
	if (rq->quiet)
		return 0;
	summary(&b, c, res);
	show_flush(c, &b);
	fflush(c->out);
	if (res->fate == RUN_PENDING && !res->decided && c->tty && isatty(STDIN_FILENO))
		ask(c, res);
	return 0;
}

int print_explore(struct cli *c, const void *req, const void *result, struct err *e)
{
	const struct explore_res *res = result;
	long long id = res->rec.id;

	(void)e;
	if (!((const struct explore_req *)req)->quiet)
		fprintf(c->out,
			"stet: left t%lld, still pending    look: stet diff t%lld    throw away: "
			"stet rollback t%lld\n",
			id, id, id);
	return 0;
}
