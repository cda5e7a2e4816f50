/* SPDX-License-Identifier: Apache-2.0 */
/* Two states of a layer: the differences between them, and the steps from one to the other. */
#include "change_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ckpt/apply.h"
#include "ckpt/compare.h"
#include "ckpt/file.h"
#include "ckpt/state.h"

/*
 * A state as words, one for each name in the upper: "a=1" a file whose content is object 1, "a=1x"
 * such a file with mode 755, "a=1&" one with several names, "l>t" a symbolic link, "d/" a
 * directory, "dx/" one with another mode, "d!" an opaque one, "-a" a whiteout, "/" the layer's own
 * root with another mode.
 */
static void read_word(char *word, struct ck_entry *e)
{
	size_t n = strlen(word);
	char *text = strpbrk(word, "=>");

	*e = (struct ck_entry){ .link = "", .xattrs = "", .rel = word, .id.nlink = 1 };
	if (word[0] == '-') {
		e->rel++;
		e->id.mode = S_IFCHR;
	} else if (text && *text == '>') {
		*text = '\0';
		e->link = text + 1;
		e->id.mode = S_IFLNK | 0777;
	} else if (text) {
		e->id.mode = S_IFREG | (strchr(text, 'x') ? 0755 : 0644);
		e->id.nlink = strchr(text, '&') ? 2 : 1;
		e->id.size = 10;
		e->obj = strtoull(text + 1, NULL, 10);
		*text = '\0';
	} else {
		e->flags = word[n - 1] == '!' ? CK_OPAQUE : 0;
		word[--n] = '\0';
		e->id.mode = S_IFDIR | (n > 1 && word[n - 1] == 'x' ? 0700 : 0755);
		if (!n)
			e->id.mode = S_IFDIR | 0711;
		else if (n > 1 && word[n - 1] == 'x')
			word[n - 1] = '\0';
	}
}

static void read_state(const char *words, struct ck_state *s)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *rest = copy, *word;
	struct ck_entry e;

	while ((word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		read_word(word, &e);
		ck_state_add(s, ck_entry_new(&e));
	}
	ck_state_sort(s);
}

struct row {
	const char *name, *host; /* words: "d/" and "f" */
	const char *now, *then;
	/* "path:AB": absent, upper or the host's (lower) before and after; '/': a directory of
	 * both, '>': on the way to a path that was chosen. */
	const char *differs;
	const char *steps;
	const char *path; /* the only one that is chosen; or NULL */
};

/* clang-format off */
static const struct row rows[] = {
	{ "nothing",                  "",         "",             "",             "", "" },
	{ "the same",                 "",         "a=1 d/ d/b=2", "a=1 d/ d/b=2", "", "" },
	{ "a new file is removed",    "",         "a=1",          "",             "a:UA",  "remove:a hostdress:." },
	{ "a removed file is made",   "",         "",             "a=1",          "a:AU",  "make:a hostdress:." },
	{ "another content",          "",         "a=1",          "a=2",          "a:UU",  "make:a hostdress:." },
	{ "another mode",             "",         "a=1",          "a=1x",         "a:UU",  "dress:a hostdress:." },
	{ "a link for a file",        "",         "a=1",          "l>t",          "a:UA l:AU",
	  "remove:a make:l hostdress:." },
	{ "the host's comes back",    "a",        "a=1",          "",             "a:UL",  "host:a hostdress:." },
	{ "the host's was changed",   "a",        "",             "a=1",          "a:LU",  "make:a hostdress:." },
	{ "a deletion is taken back", "a",        "-a",           "",             "a:AL",  "host:a hostdress:." },
	{ "it was deleted then",      "a",        "",             "-a",           "a:LA",  "remove:a hostdress:." },
	{ "a whiteout of nothing",    "",         "-a",           "",             "",      "" },

	{ "a new directory goes as a whole", "",  "d/ d/a=1 d/e/ d/e/b=1", "",
	  "d:UA d/a:UA d/e:UA d/e/b:UA",
	  "remove:d hostdress:." },
	{ "a directory is made before what is in it", "", "", "d/ d/a=1",         "d:AU d/a:AU",
	  "make:d make:d/a dress:d hostdress:." },
	{ "names that begin alike",   "",         "d/ d/a=1 d.x=1", "d/ d.x=1",
	  "d/a:UA", "remove:d/a dress:d" },
	{ "attributes of a directory", "",        "d/",           "dx/",          "d:UU/",
	  "make:d dress:d hostdress:." },
	{ "of one that the host has", "d/",       "dx/",          "",             "d:UL/", "hostdress:d hostdress:." },
	{ "the layer's own root",     "",         "/",            "",             ":UL/",  "hostdress:." },

	{ "a directory deleted and made anew hides the host's", "d/ d/a d/b", "d/", "d!",
	  "d/a:LA d/b:LA", "remove:d/a remove:d/b dress:d" },
	{ "it shows the host's again", "d/ d/a d/b", "d! d/a=1",  "d/ d/a=1",
	  "d/b:AL", "host:d/b dress:d" },
	{ "in one that both hide",    "d/ d/a",   "d! d/x=1",     "d!",
	  "d/x:UA", "remove:d/x dress:d" },
	{ "a file where the host has a directory", "d/ d/a", "d=1", "",           "d:UL",  "host:d hostdress:." },

	{ "two names are made as one file", "",   "",             "a=1& b=1&",    "a:AU b:AU",
	  "make:a link:b hostdress:." },
	{ "one of two is still there", "",        "a=1&",         "a=1& b=1&",    "b:AU",  "link:b hostdress:." },
	{ "two files with one content", "",       "",             "a=1 b=1",      "a:AU b:AU",
	  "make:a make:b hostdress:." },
	{ "a name shares its file no more", "",   "a=1& b=1&",    "a=1x b=1",     "a:UU",  "make:a hostdress:." },
	{ "parted names become one",  "",         "a=1 b=2",      "a=1& b=1&",    "b:UU",
	  "link:b hostdress:." },

	{ "a chosen path alone",      "",         "a=1 b=1",      "",             "a:UA",  "remove:a", "a" },
	{ "below a chosen path",      "",         "d/ d/a=1 e=1", "d/",           "d/a:UA", "remove:d/a", "d" },
	{ "nothing that was chosen",  "",         "a=1",          "",             "",      "", "b" },
	{ "on the way to it",         "",         "",             "d/ d/a=1 d/b=1", "d:AU> d/a:AU",
	  "make:d make:d/a dress:d", "d/a" },
	{ "on the way in the host's", "d/ d/a d/b", "-d",         "",             "d:AL> d/a:AL",
	  "hostdir:d host:d/a hostdress:d", "d/a" },
};
/* clang-format on */

static int add_diff(void *arg, const struct ck_diff *d, struct err *e)
{
	static const char letters[] = {
		[CK_ABSENT] = 'A', [CK_UPPER] = 'U', [CK_LOWER] = 'L'
	};
	struct buf *b = arg;

	(void)e;
	buf_addf(b, "%s%s:%c%c%s%s", b->len ? " " : "", d->rel, letters[d->a.seen],
		 letters[d->b.seen], d->dir ? "/" : "", d->way ? ">" : "");
	return 0;
}

/* Reads the steps that ck_plan() has written. */
static void step_words(int fd, uint64_t steps, struct buf *out)
{
	static const char *const kinds[] = {
		[STEP_REMOVE] = "remove",
		[STEP_MAKE] = "make",
		[STEP_LINK] = "link",
		[STEP_DRESS] = "dress",
		[STEP_HOST] = "host",
		[STEP_HOST_DIR] = "hostdir",
		[STEP_HOST_DRESS] = "hostdress",
	};
	char bytes[8192];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	const char *p = bytes, *end = bytes + n;
	struct ck_entry *e;

	assert_true(n >= 0 && n < (ssize_t)sizeof(bytes));
	for (uint64_t i = 0; p < end; i++, steps--) {
		int kind = *p++;

		assert_true(kind >= STEP_REMOVE && kind <= STEP_HOST_DRESS);
		assert_true(ck_decode(&p, end, &e));
		buf_addf(out, "%s%s:%s", i ? " " : "", kinds[kind],
			 *e->rel ? e->rel : ".");
		ck_unref(e);
	}
	assert_int_equal(steps, 0);
}

static void same_text(const struct row *r, const char *what, const char *got,
		      const char *want)
{
	if (strcmp(got, want) != 0)
		fail_msg("%s: %s are\n  \"%s\"\nand not\n  \"%s\"", r->name, what, got,
			 want);
}

static void make_host(int dir, const char *words)
{
	AUTO_FREE char *copy = xstrdup(words);
	char *rest = copy, *word;

	while ((word = strsep(&rest, " "))) {
		size_t n = strlen(word);

		if (n && word[n - 1] == '/') {
			word[n - 1] = '\0';
			make_dir(dir, word);
		} else if (n) {
			make_file(dir, word, "host");
		}
	}
}

static void check_row(const struct row *r)
{
	AUTO_FREE char *path = r->path ? xasprintf("/top/%s", r->path) : NULL;
	const char *const paths[] = { path, NULL }, *const *chosen = path ? paths : NULL;
	struct ck_layer layer = {
		.up = -1, .objects = -1, .live = -1, .past = -1, .path = "/top"
	};
	const struct ck_layers layers = { &layer, 1 };
	AUTO_BUF struct buf diffs = BUF_INIT, steps = BUF_INIT;
	AUTO_CLOSE int fd = memfd_create("steps", MFD_CLOEXEC);
	struct ck_state now = { 0 }, then = { 0 };
	struct fixture *f;
	struct err e = { 0 };
	uint64_t n;
	void *state;

	fixture_setup(&state);
	f = state;
	make_host(f->h, r->host);
	layer.host = f->h;
	read_state(r->now, &now);
	read_state(r->then, &then);
	if (ck_compare(&layers, &now, &then, chosen, add_diff, &diffs, &e) < 0)
		fail_msg("%s: %s", r->name, e.msg);
	same_text(r, "its differences", buf_str(&diffs), r->differs);
	if (ck_plan(&layers, &now, &then, chosen, fd, &n, &e) < 0)
		fail_msg("%s: %s", r->name, e.msg);
	step_words(fd, n, &steps);
	same_text(r, "its steps", buf_str(&steps), r->steps);
	ck_state_free(&now);
	ck_state_free(&then);
	fixture_teardown(&state);
}

static void compared_and_planned(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

/* A path that is hidden from the inside is in no state, whatever the host has there. */
static void hidden_paths(void **state)
{
	struct fixture *f = *state;
	static const char *const hidden[] = { "/top/d/secret", NULL };
	struct ck_layer layer = {
		.up = -1, .objects = -1, .path = "/top", .hidden = hidden
	};
	const struct ck_layers layers = { &layer, 1 };
	AUTO_BUF struct buf diffs = BUF_INIT;
	struct ck_state now = { 0 }, then = { 0 };
	struct err e = { 0 };

	make_host(f->h, "d/ d/a d/secret");
	layer.host = f->h;
	read_state("d!", &now);
	read_state("d/", &then);
	assert_int_equal(ck_compare(&layers, &now, &then, NULL, add_diff, &diffs, &e), 0);
	assert_string_equal(buf_str(&diffs), "d/a:AL");
	ck_state_free(&now);
	ck_state_free(&then);
}

/* A callback ends the comparison early; a state that names a missing layer is damaged. */
static int stop(void *arg, const struct ck_diff *d, struct err *e)
{
	(void)arg;
	(void)d;
	(void)e;
	return 7;
}

static void ends(void **state)
{
	struct fixture *f = *state;
	struct ck_layer layer = { .up = -1, .objects = -1, .path = "/top", .host = f->h };
	struct ck_layers layers = { &layer, 1 };
	struct ck_state now = { 0 }, then = { 0 };
	struct err e = { 0 };

	read_state("a=1 b=1", &now);
	assert_int_equal(ck_compare(&layers, &now, &then, NULL, stop, NULL, &e), 7);
	layers.n = 0;
	assert_int_equal(ck_compare(&layers, &now, &then, NULL, stop, NULL, &e), -1);
	assert_int_equal(e.kind, ERR_CORRUPT);
	ck_state_free(&now);
	ck_state_free(&then);
}

/* A file has taken the place of a directory above the chosen path: the file stays. */
static void way_is_blocked(void **state)
{
	struct fixture *f = *state;
	struct ck_layer layer = { .up = -1, .objects = -1, .path = "/top", .host = f->h };
	const struct ck_layers layers = { &layer, 1 };
	static const char *const paths[] = { "/top/d/a", NULL };
	struct ck_state now = { 0 }, then = { 0 };
	struct err e = { 0 };
	AUTO_BUF struct buf diffs = BUF_INIT;

	read_state("d=1", &now);
	read_state("d/ d/a=2", &then);
	assert_int_equal(ck_compare(&layers, &now, &then, paths, add_diff, &diffs, &e),
			 -1);
	assert_int_equal(e.kind, ERR_CONFLICT);
	ck_state_free(&now);
	ck_state_free(&then);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compared_and_planned),
		cmocka_unit_test_setup_teardown(hidden_paths, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(ends, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(way_is_blocked, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
