/* SPDX-License-Identifier: Apache-2.0 */
/* Paths between what a user types, what the engine is told, and what is printed to be typed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/ctx.h"
#include "call/paths.h"
#include "print/show.h"
#include "txn/chosen.h"

static void join(struct buf *b, char *const *v)
{
	size_t i;

	buf_reset(b);
	for (i = 0; v && v[i]; i++)
		buf_addf(b, "%s%s", i ? " " : "", v[i]);
}

/* No directory of these exists: nothing is resolved. */
static void typed_paths(void **state)
{
	static const struct {
		const char *cwd, *typed, *paths;
	} rows[] = {
		{ "/no-such/c", "a", "/no-such/c/a" },
		{ "/no-such/c", "./a//b/", "/no-such/c/a/b" },
		{ "/no-such/c", "../a", "/no-such/a" },
		{ "/no-such/c", "/no-such/x", "/no-such/x" },
		{ "/no-such/c", ".", "/no-such/c" },
		{ "/no-such/c", "*.c", "/no-such/c/\\*.c /no-such/c/*.c" },
		{ "/no-such/c", "../s/*/x?", "/no-such/s/\\*/x\\? /no-such/s/*/x?" },
		{ "/no-such/c", "s*/", "/no-such/c/s\\* /no-such/c/s*" },
		{ "/no-such/c", "[ab]/c", "/no-such/c/\\[ab]/c /no-such/c/[ab]/c" },
		{ "/no-such/c", "/no-such/*", "/no-such/\\* /no-such/*" },
		{ "/no-such/[c]", "a", "/no-such/\\[c]/a" },
		{ "/no-such/[c]", "*", "/no-such/\\[c]/\\* /no-such/\\[c]/*" },
		{ "/no-such/[c]", "../x", "/no-such/x" },
		{ "/no-such/b\\s", "a", "/no-such/b\\s/a" },
		{ "/no-such/b\\s", "a*", "/no-such/b\\\\s/a\\* /no-such/b\\\\s/a*" },
	};
	AUTO_BUF struct buf b = BUF_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO_FREE char *word = xstrdup(rows[i].typed);
		char *words[] = { word, NULL };
		struct op_paths p = { 0 };
		struct op_ctx ctx;
		struct err e;

		print_message("%s in %s\n", rows[i].typed, rows[i].cwd);
		op_ctx_init(&ctx, NULL);
		ctx.cwd = xstrdup(rows[i].cwd);
		assert_int_equal(op_paths_make(&ctx, words, &p, &e), 0);
		join(&b, p.v);
		assert_string_equal(buf_str(&b), rows[i].paths);
		op_paths_free(&p);
		op_ctx_close(&ctx);
	}
}

static void which_word(void **state)
{
	char a[] = "a", pattern[] = "b*", c[] = "c", empty[] = "";
	char *words[] = { a, pattern, c, NULL }, *bad[] = { a, empty, NULL };
	struct op_paths p = { 0 };
	struct op_ctx ctx;
	struct err e;

	(void)state;
	op_ctx_init(&ctx, NULL);
	ctx.cwd = xstrdup("/no-such");
	assert_int_equal(op_paths_make(&ctx, words, &p, &e), 0);
	assert_int_equal(strv_len(p.v), 4);
	assert_int_equal(p.word[0], 0);
	assert_int_equal(p.word[1], 1);
	assert_int_equal(p.word[2], 1);
	assert_int_equal(p.word[3], 2);
	op_paths_free(&p);
	assert_int_equal(op_paths_make(&ctx, NULL, &p, &e), 0);
	assert_null(p.v);
	assert_int_equal(op_paths_make(&ctx, bad, &p, &e), -1);
	assert_int_equal(e.kind, ERR_USAGE);
	op_paths_free(&p);
	op_ctx_close(&ctx);
}

static void paths_to_type(void **state)
{
	static const char *const rows[][2] = {
		{ "/w/a", "a" },
		{ "/w/a b", "'a b'" },
		{ "/w/it's", "'it'\\''s'" },
		{ "/w", "." },
		{ "/x/a", "/x/a" },
		{ "/wx", "/wx" },
		{ "/w/-f", "./-f" },
		{ "/w/~", "'./~'" },
		{ "/w/3", "./3" },
		{ "/w/t3", "./t3" },
		{ "/w/a\nb", "$'a\\nb'" },
		{ "/w/a'\xff\\\"", "$'a\\'\\377\\\\\\\"'" },
		{ "/w/back\\slash", "'back\\slash'" },
	};
	AUTO_BUF struct buf b = BUF_INIT;
	struct op_ctx ctx = { 0 };
	struct console c = { .ctx = &ctx };
	size_t i;

	(void)state;
	op_ctx_init(&ctx, NULL);
	ctx.cwd = xstrdup("/w");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_reset(&b);
		show_typed(&b, &c, rows[i][0]);
		assert_string_equal(buf_str(&b), rows[i][1]);
	}
	op_ctx_close(&ctx);
}

/* Which of two lists that contradict each other means a path. */
static void which_side(void **state)
{
	static const struct {
		const char *ours, *theirs, *path;
		enum chosen_side side;
	} rows[] = {
		{ "/w/a", "/w/b", "/w/a", CHOSEN_OURS },
		{ "/w/a", "/w/b", "/w/c", CHOSEN_NEITHER },
		{ "/w/a", "/w/a", "/w/a", CHOSEN_BOTH },
		{ "/w/*", "/w/a", "/w/a", CHOSEN_THEIRS },
		{ "/w/*", "/w/a", "/w/b", CHOSEN_OURS },
		{ "/w", "/w/d", "/w/d/f", CHOSEN_THEIRS },
		{ "/w/d/f", "/w/d", "/w/d/f", CHOSEN_OURS },
		{ "/w/*", "/w/?", "/w/a", CHOSEN_BOTH },
		{ "/w/d", "/w/*/f", "/w/d/f", CHOSEN_BOTH },
		{ "/w/d/f", "/w/*/f", "/w/d/f", CHOSEN_OURS },
		{ "/w/a\\*b", "/w/a*b", "/w/a*b", CHOSEN_OURS },
		{ "/w/a\\*b", "/w/a*b", "/w/axb", CHOSEN_THEIRS },
		{ "/w/a\\*b", "/w", "/w/a*b/f", CHOSEN_OURS },
		{ "/w/b\\s", "/w/b*", "/w/b\\s", CHOSEN_OURS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *const a[] = { rows[i].ours, NULL };
		const char *const b[] = { rows[i].theirs, NULL };

		print_message("%s, %s: %s\n", *a, *b, rows[i].path);
		assert_int_equal(chosen_side(a, b, rows[i].path), rows[i].side);
	}
	assert_int_equal(chosen_side(NULL, NULL, "/w"), CHOSEN_NEITHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typed_paths),
		cmocka_unit_test(which_word),
		cmocka_unit_test(paths_to_type),
		cmocka_unit_test(which_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
