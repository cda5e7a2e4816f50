/* SPDX-License-Identifier: Apache-2.0 */
/* The change list of a commit, from a host tree and an upper: which steps, in which order. */
#include "change_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "commit/draft.h"
#include "commit/operate.h"
#include "txn/home.h"

/*
 * A tree as words: "d/" a directory, "d!" an opaque one, "f=text" a file, "f>target" a
 * symbolic link, "-f" a whiteout, "g&f" another name of the file f, "f%" mode 600 for the f made
 * before.
 */
static void make_one(int dir, char *word)
{
	size_t n = strlen(word);
	char *text = strpbrk(word, "=>&");

	if (word[0] == '-') {
		make_whiteout(dir, word + 1);
	} else if (text) {
		char sign = *text;

		*text++ = '\0';
		if (sign == '=')
			make_file(dir, word, text);
		else if (sign == '>')
			make_link(dir, word, text);
		else
			assert_int_equal(linkat(dir, text, dir, word, 0), 0);
	} else if (word[n - 1] == '%') {
		word[n - 1] = '\0';
		set_mode(dir, word, 0600);
	} else {
		char last = word[n - 1];

		word[n - 1] = '\0';
		if (last == '!')
			make_opaque(dir, word);
		else
			make_dir(dir, word);
	}
}

/* Directories get their time when they are full, so that no difference of times is left. */
static void make_tree(int dir, const char *words)
{
	AUTO_FREE char *copy = xstrdup(words), *again = xstrdup(words);
	char *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		if (*word)
			make_one(dir, word);
	for (rest = again; (word = strsep(&rest, " "));)
		if (*word && strchr("/!", word[strlen(word) - 1])) {
			word[strlen(word) - 1] = '\0';
			set_mtime(dir, word, 1000000);
		}
	set_mtime(dir, ".", 1000000);
}

/* "replace:a", with a letter behind it for each flag that is set. */
static int add_step(void *arg, const struct plan_rec *r, struct err *e)
{
	static const char *const kinds[] = {
		[PLAN_REPLACE] = "replace", [PLAN_CREATE] = "create",
		[PLAN_DELETE] = "delete",   [PLAN_META] = "meta",
		[PLAN_LINK] = "link",	    [PLAN_MKDIR] = "mkdir",
		[PLAN_DIR] = "dir",
	};
	static const struct {
		unsigned flag;
		char letter;
	} flags[] = {
		{ PLAN_FORCE, 'F' },  { PLAN_PARK, 'P' },   { PLAN_TIMES, 'T' },
		{ PLAN_MERGED, 'M' }, { PLAN_STAGED, 'S' }, { PLAN_LINKED, 'L' },
	};
	struct buf *b = arg;

	(void)e;
	buf_addf(b, "%s%s:%s", b->len ? " " : "", kinds[r->kind], r->rel);
	if (r->kind == PLAN_LINK || r->flags & PLAN_LINKED)
		buf_addf(b, "&%s", r->link);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (r->flags & flags[i].flag)
			buf_addc(b, flags[i].letter);
	return 0;
}

struct row {
	const char *name, *host, *upper;
	const char *steps;		   /* NULL: no list was made */
	const char *conflicts;		   /* "path: what", a line each; NULL: none */
	const char *paths, *ours, *theirs; /* wishes, one path each, below the host */
	bool changed; /* everything on the host has changed since the transaction began */
	bool merge, dry;
};

/* clang-format off */
static const struct row rows[] = {
	{ "nothing", "a=1", "", "" },
	{ "a copy that did not change", "a=1", "a=1", "" },
	{ "a new file", "", "a=1", "create:a dir:.T" },
	{ "another content", "a=1", "a=22", "replace:a dir:.T" },
	{ "a mode", "a=1", "a=1 a%", "meta:a" },
	{ "a deleted file", "a=1", "-a", "delete:a dir:.T" },
	{ "a whiteout of nothing", "", "-a", "" },
	{ "a file becomes a link", "a=1", "a>b", "replace:a dir:.T" },
	{ "a file becomes a directory", "a=1", "a! a/x=1", "replace:a dir:.T" },
	{ "another target", "a>b", "a>c", "replace:a dir:.T" },
	{ "a directory below another", "d/", "d/ d/x=1", "create:d/x dir:d" },
	{ "the mode of a directory", "d/", "d/ d%", "dir:d" },
	{ "deepest directories come first", "d/ d/e/ d/e/f=1 a=1", "d/ d/e/ d/e/f=22 a=22",
	  "replace:a replace:d/e/f dir:d/e dir:.T" },
	{ "a new directory goes whole", "", "d/ d/a=1 d/e/ d/e/b=2", "create:d dir:.T" },
	{ "a deleted directory goes whole", "d/ d/a=1", "-d", "delete:d dir:.T" },
	{ "a directory made anew", "d/ d/a=1 d/b=1", "d! d/b=2", "delete:d/a replace:d/b dir:d" },
	{ "two new names of one file", "", "a=1 b&a", "create:a create:b dir:.T" },
	{ "in a new directory they go with it", "", "d/ d/a=1 d/b&d/a", "create:d dir:.T" },
	{ "two names change together", "a=1 b&a", "a=22 b&a", "replace:a replace:b dir:.T" },
	{ "another name of a file of the host's", "a=1", "a=1 b&a", "link:b&a dir:.T" },
	{ "in the place of another file", "a=1 b=2", "a=1 b&a", "replace:b&aL dir:.T" },
	{ "one of two names changes", "a=1 b&a", "a=22", "replace:a dir:.T" },
	{ "a mode of two names", "a=1 b&a", "a=1 b&a a%", "meta:a meta:b" },

	{ "a chosen file", "", "a=1 b=1", "create:aP dir:.PT", .paths = "a" },
	{ "a chosen directory", "d/ e/", "d/ d/x=1 e/ e/y=1", "create:d/xP dir:dP", .paths = "d" },
	{ "a chosen file in a new directory", "", "d/ d/a=1 d/b=1",
	  "mkdir:dP create:d/aP dir:dP dir:.PT", .paths = "d/a" },
	{ "nothing that was chosen", "a=1", "a=22", "", .paths = "b" },
	{ "a dry run keeps no list", "a=1", "a=22", NULL, .dry = true },

	{ "both have changed it", "a=1", "a=22", NULL,
	  "a: changed in t1, changed on the host", .changed = true },
	{ "deleted here", "a=1", "-a", NULL, "a: deleted in t1, changed on the host", .changed = true },
	{ "both have made it", "a=1", "a>b", NULL, "a: changed in t1, changed on the host",
	  .changed = true },
	{ "both the same", "a=1", "a=1", "", .changed = true },
	{ "the mode of a directory of both", "d/", "d/ d%", NULL,
	  "d: changed here, changed on the host", .changed = true },
	{ "a new file meets nobody", "", "a=1", "create:a dir:.T", .changed = true },
	{ "ours wins", "a=1 b=1", "a=22", "replace:aF dir:.T", .ours = "a", .changed = true },
	{ "theirs is left out", "a=1", "a=22 b=1", "create:b dir:.T", .theirs = "a", .changed = true },
	{ "theirs counts for conflicts alone", "", "a=1", "create:a dir:.T", .theirs = "a",
	  .changed = true },
	{ "what is deleted with its directory", "d/ d/a=1", "-d", NULL,
	  "d/a: deleted in t1, changed on the host\nd: deleted in t1, changed on the host",
	  .changed = true },
};
/* clang-format on */

static const char **one_path(const struct fixture *f, const char *rel, const char **v)
{
	if (!rel)
		return NULL;
	v[0] = xasprintf("%s/%s", f->host, rel);
	v[1] = NULL;
	return v;
}

static void conflict_words(const struct fixture *f, const struct commit_result *res,
			   struct buf *out)
{
	for (size_t i = 0; i < res->conflicts.n; i++)
		buf_addf(out, "%s%s: %s", i ? "\n" : "",
			 res->conflicts.v[i].path + strlen(f->host) + 1,
			 res->conflicts.v[i].what);
}

static void same_text(const struct row *r, const char *what, const char *got,
		      const char *want)
{
	if (strcmp(got, want) != 0)
		fail_msg("%s: %s are\n  \"%s\"\nand not\n  \"%s\"", r->name, what, got,
			 want);
}

static void check_steps(const struct row *r, struct operation *o, const char *name)
{
	AUTO_BUF struct buf b = BUF_INIT;
	struct plan *p;
	struct err e = { 0 };

	if (!r->steps) {
		assert_int_equal(faccessat(o->dir, name, F_OK, 0), -1);
		return;
	}
	if (plan_open(o->dir, name, &p, &e) < 0)
		fail_msg("%s: %s", r->name, e.msg);
	assert_int_equal(plan_each(p, false, add_step, &b, &e), 0);
	plan_close(p);
	same_text(r, "its steps", buf_str(&b), r->steps);
}

static void check_row(const struct row *r, struct home *h)
{
	const char *paths[2] = { 0 }, *ours[2] = { 0 }, *theirs[2] = { 0 };
	AUTO_BUF struct buf conflicts = BUF_INIT;
	struct commit_result res = { 0 };
	struct layer_record layer = { .kind = LAYER_OVERLAY };
	struct txn t = { .lock = -1,
			 .guard = -1,
			 .rec = { .id = 1, .layers = &layer, .nlayers = 1 } };
	struct commit_wish w = { .merge = r->merge, .dry_run = r->dry };
	struct operation o;
	struct fixture *f;
	struct err e = { 0 };
	void *state;

	fixture_setup(&state);
	f = state;
	make_tree(f->h, r->host);
	make_tree(f->u, r->upper);
	layer.host = f->host;
	layer.dir = t.rec.dir = f->dir;
	t.rec.workspace = f->host;
	t.rec.begin_ns = r->changed ? 1 : INT64_MAX / 2;
	w.paths = one_path(f, r->paths, paths);
	w.ours = one_path(f, r->ours, ours);
	w.theirs = one_path(f, r->theirs, theirs);
	if (operate_open(&t, true, &o, &e) < 0 ||
	    draft_make(h, &t, &w, o.apply, o.layers, o.nlayers, o.dir, "plan-1", &res,
		       &e) < 0)
		fail_msg("%s: %s", r->name, e.msg);
	conflict_words(f, &res, &conflicts);
	same_text(r, "its conflicts", buf_str(&conflicts),
		  r->conflicts ? r->conflicts : "");
	check_steps(r, &o, "plan-1");
	operate_close(&o);
	commit_result_free(&res);
	free((char *)(uintptr_t)paths[0]);
	free((char *)(uintptr_t)ours[0]);
	free((char *)(uintptr_t)theirs[0]);
	fixture_teardown(&state);
}

static void steps_of_a_commit(void **state)
{
	char dir[] = "/tmp/stet-draft-XXXXXX";
	const char *const rm[] = { "rm", "-rf", dir, NULL };
	struct home h = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("STET_STATE_DIR", dir, 1);
	if (home_open(&h, &e) < 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i], &h);
	home_close(&h);
	assert_int_equal(run_in("/", rm), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(steps_of_a_commit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
