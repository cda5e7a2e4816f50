/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a transaction: what can be undone and redone, and which steps stand. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "commit/history.h"

enum { MOST_OPS = 6, MOST_STEPS = 6 };

/* --- which operation is next --- */

struct op {
	enum op_kind kind;
	enum op_state state;
	int undone, redone;
};

/* clang-format off */
static const struct {
	const char *name;
	struct op ops[MOST_OPS]; /* their numbers are 1, 2, … */
	size_t n;
	int64_t undo, redo; /* 0: there is nothing */
} stacks[] = {
	{ "nothing was done",        { { 0 } }, 0, 0, 0 },
	{ "a commit",                { { OP_COMMIT, OP_DONE, 0, 0 } }, 1, 1, 0 },
	{ "a rollback",              { { OP_ROLLBACK, OP_DONE, 0, 0 } }, 1, 1, 0 },
	{ "a commit under way",      { { OP_COMMIT, OP_APPLYING, 0, 0 } }, 1, 0, 0 },
	{ "a commit that was taken back half way",
	                             { { OP_COMMIT, OP_REVERSED, 0, 0 } }, 1, 0, 0 },
	{ "two commits",             { { OP_COMMIT, OP_DONE, 0, 0 }, { OP_COMMIT, OP_DONE, 0, 0 } }, 2, 2, 0 },
	{ "a commit undone",         { { OP_COMMIT, OP_DONE, 1, 0 }, { OP_UNDO, OP_DONE, 0, 0 } }, 2, 0, 2 },
	{ "the newer of two undone", { { OP_COMMIT, OP_DONE, 0, 0 }, { OP_COMMIT, OP_DONE, 1, 0 },
	                               { OP_UNDO, OP_DONE, 0, 0 } }, 3, 1, 3 },
	{ "both undone: a stack",    { { OP_COMMIT, OP_DONE, 1, 0 }, { OP_COMMIT, OP_DONE, 1, 0 },
	                               { OP_UNDO, OP_DONE, 0, 0 }, { OP_UNDO, OP_DONE, 0, 0 } }, 4, 0, 4 },
	{ "one of them redone",      { { OP_COMMIT, OP_DONE, 0, 0 }, { OP_COMMIT, OP_DONE, 1, 0 },
	                               { OP_UNDO, OP_DONE, 0, 0 }, { OP_UNDO, OP_DONE, 0, 1 },
	                               { OP_REDO, OP_DONE, 0, 0 } }, 5, 1, 3 },
	{ "a redo that did not end", { { OP_COMMIT, OP_DONE, 1, 0 }, { OP_UNDO, OP_DONE, 0, 0 },
	                               { OP_REDO, OP_REVERSED, 0, 0 } }, 3, 0, 2 },
	{ "made final by something new",
	                             { { OP_COMMIT, OP_DONE, 2, 0 }, { OP_UNDO, OP_DONE, 0, 2 },
	                               { OP_COMMIT, OP_DONE, 0, 0 } }, 3, 3, 0 },
};
/* clang-format on */

static int64_t id_of(const struct op_record *r)
{
	return r ? r->id : 0;
}

static void next_operation(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		struct op_record v[MOST_OPS] = { 0 };
		struct history hi = { v, stacks[i].n };

		for (size_t k = 0; k < hi.n; k++)
			v[k] = (struct op_record){ .id = (int64_t)k + 1,
						   .kind = stacks[i].ops[k].kind,
						   .state = stacks[i].ops[k].state,
						   .undone = stacks[i].ops[k].undone,
						   .redone = stacks[i].ops[k].redone };
		if (id_of(history_undoable(&hi)) != stacks[i].undo ||
		    id_of(history_redoable(&hi)) != stacks[i].redo)
			fail_msg("%s: undo %d, redo %d", stacks[i].name,
				 (int)id_of(history_undoable(&hi)),
				 (int)id_of(history_redoable(&hi)));
		assert_int_equal(id_of(history_find(&hi, 1)), hi.n ? 1 : 0);
		assert_null(history_find(&hi, (int64_t)hi.n + 1));
	}
}

/* --- which steps stand --- */

/*
 * A list: its steps by serial. "r1" replaces path 1, "c" creates, "d" deletes, "m" sets the
 * mode of a directory, "t" only its times; "!" behind one says that the user has decided it.
 */
struct list {
	const char *name, *steps;
};

/* clang-format off */
static const struct list lists[] = {
	{ "commit",  "r1 c2 d3 m4 t5" },
	{ "part",    "r1 t5" },          /* of an undo of path 1 alone */
	{ "rest",    "c2 d3 m4 t5" },    /* of an undo of the rest */
	{ "dir",     "m4" },
	{ "forced",  "r1!" },            /* of a redo that met something else */
	{ "other",   "r1 c2 d3" },       /* of another commit */
};

static const struct {
	const char *name;
	struct {
		enum op_kind kind;
		enum op_state state;
		int64_t target;
		const char *list;
	} ops[MOST_OPS]; /* after the commit, which is number 2 */
	/*
	 * The commit's steps that stand; '*': as another list did the step; 't': its times
	 * alone.
	 */
	const char *stand;
	bool plain;
} fates[] = {
	{ "nothing since",          { { 0 } }, "1 2 3 4 5", true },
	{ "undone whole",           { { OP_UNDO, OP_DONE, 2, "commit" } }, "4t 5", false },
	{ "an undo that failed",    { { OP_UNDO, OP_REVERSED, 2, "commit" } }, "1 2 3 4 5", true },
	{ "undone and redone",      { { OP_UNDO, OP_DONE, 2, "commit" },
	                              { OP_REDO, OP_DONE, 2, "commit" } }, "1 2 3 4 5", true },
	{ "a part undone",          { { OP_UNDO, OP_DONE, 2, "part" } }, "2 3 4 5", false },
	{ "the rest undone",        { { OP_UNDO, OP_DONE, 2, "rest" } }, "1 4t 5", false },
	{ "a part, then the rest",  { { OP_UNDO, OP_DONE, 2, "part" },
	                              { OP_UNDO, OP_DONE, 2, "rest" } }, "4t 5", false },
	{ "a part, redone",         { { OP_UNDO, OP_DONE, 2, "part" },
	                              { OP_REDO, OP_DONE, 2, "part" } }, "1 2 3 4 5", false },
	{ "a part, then all; the part redone",
	                            { { OP_UNDO, OP_DONE, 2, "commit" },
	                              { OP_REDO, OP_DONE, 2, "part" } }, "1 4t 5", false },
	{ "attributes of a directory undone",
	                            { { OP_UNDO, OP_DONE, 2, "dir" } }, "1 2 3 4t 5", false },
	{ "redone against something else",
	                            { { OP_UNDO, OP_DONE, 2, "commit" },
	                              { OP_REDO, OP_DONE, 2, "forced" } }, "1* 4t 5", false },
	{ "another commit undone",  { { OP_UNDO, OP_DONE, 1, "other" } }, "1 2 3 4 5", true },
	{ "of no noted commit",     { { OP_UNDO, OP_DONE, 0, "part" } }, "2 3 4 5", false },
	{ "all lists in a row",     { { OP_UNDO, OP_DONE, 2, "part" },
	                              { OP_UNDO, OP_DONE, 2, "rest" },
	                              { OP_REDO, OP_DONE, 2, "rest" },
	                              { OP_REDO, OP_DONE, 2, "part" } }, "1 2 3 4 5", false },
};
/* clang-format on */

static void write_list(int dir, const struct list *l)
{
	AUTO_FREE char *copy = xstrdup(l->steps);
	struct plan_writer *w;
	struct err e = { 0 };
	char *rest = copy, *word;
	uint64_t n;

	assert_int_equal(plan_create(dir, l->name, &w, &e), 0);
	while ((word = strsep(&rest, " "))) {
		char rel[2] = { word[1], '\0' };
		struct plan_rec r = { .rel = rel, .link = "" };

		r.before.mode = S_IFREG | 0644;
		r.after.mode = S_IFREG | 0644;
		r.kind = word[0] == 'r'	  ? PLAN_REPLACE
			 : word[0] == 'c' ? PLAN_CREATE
			 : word[0] == 'd' ? PLAN_DELETE
					  : PLAN_DIR;
		if (r.kind == PLAN_CREATE)
			r.before.mode = 0;
		if (r.kind == PLAN_DELETE)
			r.after.mode = 0;
		if (r.kind == PLAN_DIR) {
			r.before.mode = S_IFDIR | 0755;
			r.after.mode = word[0] == 'm' ? S_IFDIR | 0700 : S_IFDIR | 0755;
			r.flags = word[0] == 't' ? PLAN_TIMES : 0;
		}
		r.flags |= word[2] == '!' ? PLAN_FORCE : 0;
		assert_int_equal(plan_add_as(w, &r, (uint64_t)(word[1] - '0'), &e), 0);
	}
	assert_int_equal(plan_finish(w, &n, &e), 0);
}

struct stand {
	const struct standing *s;
	struct buf words;
};

static int add_standing(void *arg, const struct plan_rec *r, struct err *e)
{
	struct stand *st = arg;
	struct plan_rec copy = *r;
	int stands = standing_step(st->s, &copy, e);

	assert_true(stands >= 0);
	if (!stands)
		return 0;
	buf_addf(&st->words, "%s%s", st->words.len ? " " : "", r->rel);
	if (copy.flags & PLAN_FORCE)
		buf_addc(&st->words, '*');
	if (copy.flags & PLAN_TIMES && !(r->flags & PLAN_TIMES))
		buf_addc(&st->words, 't');
	return 0;
}

static char *list_name(const char *name)
{
	return name ? xstrdup(name) : NULL;
}

static void check_fate(int dir, size_t i)
{
	struct op_record v[MOST_OPS + 2] = { 0 };
	struct history hi = { v, 2 };
	struct stand st = { .words = BUF_INIT };
	struct standing *s;
	struct plan *p;
	struct err e = { 0 };

	v[0] = (struct op_record){
		.id = 1, .kind = OP_COMMIT, .state = OP_DONE, .plan = list_name("other")
	};
	v[1] = (struct op_record){
		.id = 2, .kind = OP_COMMIT, .state = OP_DONE, .plan = list_name("commit")
	};
	for (size_t k = 0; k < MOST_OPS && fates[i].ops[k].list; k++, hi.n++)
		v[hi.n] = (struct op_record){ .id = (int64_t)hi.n + 1,
					      .kind = fates[i].ops[k].kind,
					      .state = fates[i].ops[k].state,
					      .target = fates[i].ops[k].target,
					      .plan = list_name(fates[i].ops[k].list) };
	if (standing_open(dir, &hi, &v[1], &s, &e) < 0)
		fail_msg("%s: %s", fates[i].name, e.msg);
	st.s = s;
	assert_int_equal(plan_open(dir, "commit", &p, &e), 0);
	assert_int_equal(plan_each(p, false, add_standing, &st, &e), 0);
	plan_close(p);
	if (strcmp(buf_str(&st.words), fates[i].stand) != 0 ||
	    standing_is_plain(s) != fates[i].plain)
		fail_msg("%s: %s stand%s", fates[i].name, buf_str(&st.words),
			 standing_is_plain(s) ? ", plain" : "");
	standing_free(s);
	buf_free(&st.words);
	for (size_t k = 0; k < hi.n; k++)
		free(v[k].plan);
}

static void standing_steps(void **state)
{
	char dir[] = "/tmp/stet-history-XXXXXX";
	AUTO_CLOSE int fd = -1;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		write_list(fd, &lists[i]);
	for (size_t i = 0; i < ARRAY_SIZE(fates); i++)
		check_fate(fd, i);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		assert_int_equal(unlinkat(fd, lists[i].name, 0), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Where a list cannot be read, nobody can tell which steps stand. */
static void lost_list(void **state)
{
	char dir[] = "/tmp/stet-history-XXXXXX";
	char name[] = "commit", gone[] = "gone";
	struct op_record v[] = {
		{ .id = 1, .kind = OP_COMMIT, .state = OP_DONE, .plan = name },
		{ .id = 2, .kind = OP_UNDO, .state = OP_DONE, .target = 1, .plan = gone },
	};
	const struct history hi = { v, 2 };
	AUTO_CLOSE int fd = -1;
	struct standing *s;
	struct err e = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(standing_open(fd, &hi, &v[0], &s, &e), -1);
	assert_true(e.msg[0]);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next_operation),
		cmocka_unit_test(standing_steps),
		cmocka_unit_test(lost_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
