/* SPDX-License-Identifier: Apache-2.0 */
/* The bar for who waits, on a terminal of our own. */
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "print/term.h"

/* Runs @steps steps of a task with standard error at @fd and the clock @late ms ahead. */
static void work(int fd, char *term, int64_t late, uint64_t steps)
{
	char *env[] = { term, NULL };
	int saved = dup(STDERR_FILENO);
	struct progress p;
	struct op_ctx ctx;
	uint64_t i;

	op_ctx_init(&ctx, env);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	progress_begin(&ctx, &p);
	p.begun -= late;
	for (i = 1; i <= steps && ctx.progress; i++)
		ctx.progress(ctx.progress_arg, i, 4);
	progress_end(&ctx, &p);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_null(ctx.progress);
	op_ctx_close(&ctx);
}

static void drain(int fd, struct buf *b)
{
	char block[512];
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	buf_reset(b);
	while ((n = read(fd, block, sizeof(block))) > 0)
		buf_add(b, block, (size_t)n);
}

static void bar(void **state)
{
	char xterm[] = "TERM=xterm", dumb[] = "TERM=dumb";
	struct winsize wide = { .ws_row = 24, .ws_col = 100 };
	struct winsize narrow = { .ws_row = 24, .ws_col = 40 };
	AUTO_BUF struct buf b = BUF_INIT;
	int ours, theirs, fds[2];

	(void)state;
	assert_int_equal(openpty(&ours, &theirs, NULL, NULL, &wide), 0);
	/* Nobody waited. */
	work(theirs, xterm, 0, 4);
	drain(ours, &b);
	assert_int_equal(b.len, 0);
	/* Drawn once, as all steps came in one moment, and wiped. */
	work(theirs, xterm, 2000, 4);
	drain(ours, &b);
	assert_string_equal(buf_str(&b), "\r[==========                              ]"
					 "  25 %  1 of 4\r\033[K");
	assert_int_equal(ioctl(theirs, TIOCSWINSZ, &narrow), 0);
	work(theirs, xterm, 2000, 1);
	drain(ours, &b);
	assert_string_equal(buf_str(&b), "\r[==        ]  25 %  1 of 4\r\033[K");
	work(theirs, dumb, 2000, 4);
	drain(ours, &b);
	assert_int_equal(b.len, 0);
	close(ours);
	close(theirs);
	assert_int_equal(pipe(fds), 0);
	work(fds[1], xterm, 2000, 4);
	drain(fds[0], &b);
	assert_int_equal(b.len, 0);
	close(fds[0]);
	close(fds[1]);
}

static void choices(void **state)
{
	static const char *const words[] = { "commit", "diff", "keep", "rollback", NULL };
	static const struct {
		const char *line;
		int choice;
	} rows[] = {
		{ "c\n", 0 },	     { "C\n", 0 },
		{ "commit\n", 0 },   { "com", 0 },
		{ " d \r\n", 1 },    { "roll back\n", 3 },
		{ "Rollback\n", 3 }, { "roll", 3 },
		{ "cancel\n", -1 },  { "commits\n", -1 },
		{ "nope\n", -1 },    { "dqc\n", -1 },
		{ "\n", -1 },	     { "", -1 },
		{ "c d\n", -1 },     { "keepkeepkeepkeepkeep", -1 },
		{ "x", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(term_choice(rows[i].line, words), rows[i].choice);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(bar),
					    cmocka_unit_test(choices) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
