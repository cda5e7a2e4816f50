/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "verbs/diff.h"
#include "verbs/verbs.h"

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

enum consent cli_consent(void *arg, const struct consent_question *q)
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
