/* SPDX-License-Identifier: Apache-2.0 */
#include "change_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "diff/list.h"
#include "diff/patch.h"
#include "diff/rename.h"

/* The patch of everything, renames found. Free it. */
static char *patch_of(struct fixture *f, struct patch_stat *sum)
{
	struct buf out = BUF_INIT;
	struct change_list l;
	struct err e;
	size_t i;

	if (change_collect(&f->layer, 1, &l, &e) < 0 ||
	    change_find_renames(&f->layer, &l, &e) < 0)
		fail_msg("%s", e.msg);
	for (i = 0; i < l.n; i++) {
		const struct change_item *it = &l.v[i];
		const struct change *from = NULL;
		struct patch_stat st, quiet;

		if (it->renamed_away)
			continue;
		if (it->renamed_from != SIZE_MAX)
			from = &l.v[it->renamed_from].c;
		if (patch_make(&f->layer, &it->c, from, f->host, &out, &st, &e) < 0 ||
		    patch_make(&f->layer, &it->c, from, f->host, NULL, &quiet, &e) < 0)
			fail_msg("%s", e.msg);
		/* Counting alone gives the same numbers. */
		assert_memory_equal(&st.added, &quiet.added, sizeof(st.added));
		assert_int_equal(st.removed, quiet.removed);
		assert_int_equal(st.binary, quiet.binary);
		if (sum) {
			sum->added += st.added;
			sum->removed += st.removed;
			sum->binary = sum->binary || st.binary;
			sum->size_before += st.size_before;
			sum->size_after += st.size_after;
		}
	}
	change_list_free(&l);
	buf_adds(&out, "");
	return buf_take(&out);
}

static void check_patch(struct fixture *f, const char *expected)
{
	char *p = patch_of(f, NULL);

	assert_string_equal(p, expected);
	free(p);
}

static void test_text(void **state)
{
	struct fixture *f = *state;
	struct patch_stat sum = { 0 };
	char *p;

	make_file(f->h, "changed", "one\ntwo\nthree\n");
	make_file(f->u, "changed", "one\n2\nthree\nfour");
	make_file(f->u, "empty", "");
	make_file(f->h, "gone", "bye\n");
	make_whiteout(f->u, "gone");
	make_file(f->u, "new", "hello\n");
	p = patch_of(f, &sum);
	assert_string_equal(p, "diff --git a/changed b/changed\n"
			       "--- a/changed\n"
			       "+++ b/changed\n"
			       "@@ -1,3 +1,4 @@\n"
			       " one\n"
			       "-two\n"
			       "+2\n"
			       " three\n"
			       "+four\n"
			       "\\ No newline at end of file\n"
			       "diff --git a/empty b/empty\n"
			       "new file mode 100644\n"
			       "index 000000000000..e69de29bb2d1\n"
			       "diff --git a/gone b/gone\n"
			       "deleted file mode 100644\n"
			       "--- a/gone\n"
			       "+++ /dev/null\n"
			       "@@ -1 +0,0 @@\n"
			       "-bye\n"
			       "diff --git a/new b/new\n"
			       "new file mode 100644\n"
			       "--- /dev/null\n"
			       "+++ b/new\n"
			       "@@ -0,0 +1 @@\n"
			       "+hello\n");
	free(p);
	assert_int_equal(sum.added, 3);
	assert_int_equal(sum.removed, 2);
	assert_false(sum.binary);
	assert_int_equal(sum.size_before, 14 + 4);
	assert_int_equal(sum.size_after, 16 + 6);
}

static void test_modes_links_types(void **state)
{
	struct fixture *f = *state;

	make_file(f->h, "1mode", "x\n");
	make_file(f->u, "1mode", "x\n");
	set_mode(f->u, "1mode", 04750);
	make_link(f->h, "2link", "old");
	make_link(f->u, "2link", "new");
	make_file(f->h, "3type", "was a file\n");
	make_link(f->u, "3type", "is a link");
	make_file(f->h, "4touched", "x\n");
	make_file(f->u, "4touched", "x\n");
	set_mtime(f->u, "4touched", 7);
	check_patch(f, "diff --git a/1mode b/1mode\n"
		       "old mode 100644\n"
		       "new mode 104750\n"
		       "diff --git a/2link b/2link\n"
		       "index 489ce0f857e7..3e5126c4e761 120000\n"
		       "--- a/2link\n"
		       "+++ b/2link\n"
		       "@@ -1 +1 @@\n"
		       "-old\n"
		       "\\ No newline at end of file\n"
		       "+new\n"
		       "\\ No newline at end of file\n"
		       "diff --git a/3type b/3type\n"
		       "deleted file mode 100644\n"
		       "--- a/3type\n"
		       "+++ /dev/null\n"
		       "@@ -1 +0,0 @@\n"
		       "-was a file\n"
		       "diff --git a/3type b/3type\n"
		       "new file mode 120000\n"
		       "--- /dev/null\n"
		       "+++ b/3type\n"
		       "@@ -0,0 +1 @@\n"
		       "+is a link\n"
		       "\\ No newline at end of file\n");
}

static void test_special_objects(void **state)
{
	struct fixture *f = *state;

	make_dir(f->u, "a dir");
	make_dir(f->h, "b");
	make_whiteout(f->u, "b");
	make_node(f->u, "c", S_IFIFO);
	make_node(f->h, "d", S_IFSOCK);
	make_file(f->u, "d", "text\n");
	make_dir(f->h, "e");
	make_dir(f->u, "e");
	set_mode(f->u, "e", 01777);
	make_file(f->h, "f", "x\n");
	make_file(f->u, "f", "x\n");
	set_xattr(f->h, "f", "user.gone", "1");
	set_xattr(f->h, "f", "user.other", "1");
	set_xattr(f->u, "f", "user.other", "2");
	set_xattr(f->u, "f", "user.overlay.overlay.x", "2");
	make_file(f->u, "g", "");
	set_xattr(f->u, "g", "user.evil\x1b", "2");
	check_patch(f, "# new directory a dir, mode 040755\n"
		       "# deleted directory b, mode 040755\n"
		       "# new fifo c, mode 010644\n"
		       "# deleted socket d, mode 140644\n"
		       "diff --git a/d b/d\n"
		       "new file mode 100644\n"
		       "--- /dev/null\n"
		       "+++ b/d\n"
		       "@@ -0,0 +1 @@\n"
		       "+text\n"
		       "# mode of e: 040755 -> 041777\n"
		       "# xattr of f: ~user.other\n"
		       "# xattr of f: +user.overlay.x\n"
		       "# xattr of f: -user.gone\n"
		       "diff --git a/g b/g\n"
		       "new file mode 100644\n"
		       "index 000000000000..e69de29bb2d1\n"
		       "# xattr of g: +user.evil\\033\n");
}

static void test_binary(void **state)
{
	struct fixture *f = *state;
	struct patch_stat sum = { 0 };
	char late[9001];
	int fd;
	char *p;

	make_bytes(f->h, "1", "a\0b", 3);
	make_bytes(f->u, "1", "a\0bcd", 5);
	make_bytes(f->u, "2", "\0", 1);
	fd = openat(f->u, "3", O_WRONLY | O_CREAT, 0644);
	assert_int_equal(ftruncate(fd, (64 << 20) + 1), 0);
	close(fd);
	p = patch_of(f, &sum);
	assert_string_equal(p, "diff --git a/1 b/1\n"
			       "Binary files a/1 and b/1 differ\n"
			       "# size 3 -> 5\n"
			       "diff --git a/2 b/2\n"
			       "new file mode 100644\n"
			       "Binary files /dev/null and b/2 differ\n"
			       "# size none -> 1\n"
			       "diff --git a/3 b/3\n"
			       "new file mode 100644\n"
			       "Binary files /dev/null and b/3 differ\n"
			       "# size none -> 67108865\n");
	free(p);
	assert_true(sum.binary);
	assert_int_equal(sum.added + sum.removed, 0);
	/* A NUL further in does not make it binary, nor is it lost. */
	memset(late, 'x', sizeof(late));
	late[8500] = '\0';
	make_bytes(f->u, "1", late, sizeof(late));
	make_bytes(f->h, "1", "x\n", 2);
	assert_int_equal(unlinkat(f->u, "2", 0), 0);
	assert_int_equal(unlinkat(f->u, "3", 0), 0);
	sum = (struct patch_stat){ 0 };
	free(patch_of(f, &sum));
	assert_false(sum.binary);
	assert_int_equal(sum.added, 1);
	assert_int_equal(sum.removed, 1);
}

static void test_names_are_quoted(void **state)
{
	struct fixture *f = *state;

	make_file(f->u, "a b", "x\n");
	make_file(f->u, "n\nl", "x\n");
	make_file(f->u, "\xff\"", "x\n");
	check_patch(f, "diff --git \"a/a b\" \"b/a b\"\n"
		       "new file mode 100644\n"
		       "--- /dev/null\n"
		       "+++ b/a b\t\n"
		       "@@ -0,0 +1 @@\n"
		       "+x\n"
		       "diff --git \"a/n\\nl\" \"b/n\\nl\"\n"
		       "new file mode 100644\n"
		       "--- /dev/null\n"
		       "+++ \"b/n\\nl\"\n"
		       "@@ -0,0 +1 @@\n"
		       "+x\n"
		       "diff --git \"a/\\377\\\"\" \"b/\\377\\\"\"\n"
		       "new file mode 100644\n"
		       "--- /dev/null\n"
		       "+++ \"b/\\377\\\"\"\n"
		       "@@ -0,0 +1 @@\n"
		       "+x\n");
}

static void test_rename(void **state)
{
	struct fixture *f = *state;

	make_file(f->h, "old name", "content\n");
	make_whiteout(f->u, "old name");
	make_file(f->u, "new", "content\n");
	set_mode(f->u, "new", 0755);
	check_patch(f, "diff --git \"a/old name\" b/new\n"
		       "old mode 100644\n"
		       "new mode 100755\n"
		       "similarity index 100%\n"
		       "rename from old name\n"
		       "rename to new\n");
}

static void test_unreadable_is_said(void **state)
{
	struct fixture *f = *state;

	if (geteuid() == 0) {
		make_file(f->u, "x", "x\n");
		set_mode(f->u, "x", 0);
		check_patch(f, "diff --git a/x b/x\nnew file mode 100000\n--- /dev/null\n"
			       "+++ b/x\n@@ -0,0 +1 @@\n+x\n");
		return;
	}
	make_file(f->u, "x", "x\n");
	set_mode(f->u, "x", 0);
	check_patch(f, "diff --git a/x b/x\nnew file mode 100000\n"
		       "# new x cannot be read: no permission\n");
}

static void test_name_of_a_path(void **state)
{
	static const struct {
		const char *path, *root, *name;
	} cases[] = {
		{ "/home/u/p/a/b", "/home/u/p", "a/b" },
		{ "/home/u/.rc", "/home/u/p", "../.rc" },
		{ "/home/u/p2", "/home/u/p", "../p2" },
		{ "/etc/x", "/home/u/p", "../../../etc/x" },
		{ "/home/u/p", "/home/u/p", "." },
		{ "/home/u", "/home/u/p", ".." },
		{ "/home", "/home/u/p", "../.." },
		{ "/etc/x", "/", "etc/x" },
		{ "/etc/x", NULL, "etc/x" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf b = BUF_INIT;

		patch_name(cases[i].path, cases[i].root, &b);
		assert_string_equal(buf_str(&b), cases[i].name);
		buf_free(&b);
	}
}

static void test_name_status(void **state)
{
	static const char lines[] = "A\tdir/\n"
				    "M\tdir2/m\n"
				    "X\tmode\n"
				    "R100\told\tnew\n"
				    "D\told\n"
				    "A\t\"q\\t\"\n";
	static const char fields[] = "A\0dir/\0M\0dir2/m\0X\0mode\0R100\0old\0new\0D\0old"
				     "\0A\0q\t";
	struct fixture *f = *state;
	struct buf b = BUF_INIT, z = BUF_INIT;
	struct change_list l;
	struct err e;
	size_t i;

	make_dir(f->u, "dir");
	make_dir(f->h, "dir2");
	make_dir(f->u, "dir2");
	make_file(f->h, "dir2/m", "1");
	make_file(f->u, "dir2/m", "2");
	make_file(f->h, "mode", "1");
	make_file(f->u, "mode", "1");
	set_mode(f->u, "mode", 0600);
	make_file(f->u, "new", "content");
	make_file(f->h, "old", "content");
	make_whiteout(f->u, "old");
	make_file(f->u, "q\t", "x");
	assert_int_equal(change_collect(&f->layer, 1, &l, &e), 0);
	assert_int_equal(change_find_renames(&f->layer, &l, &e), 0);
	for (i = 0; i < l.n; i++) {
		patch_name_status(&l, &l.v[i], f->host, false, &b);
		patch_name_status(&l, &l.v[i], f->host, true, &z);
	}
	assert_string_equal(buf_str(&b), lines);
	assert_int_equal(z.len, sizeof(fields));
	assert_memory_equal(z.data, fields, sizeof(fields));
	change_list_free(&l);
	buf_free(&b);
	buf_free(&z);
}

/* A workspace with every change that git and patch know of. */
static void make_workspace(struct fixture *f)
{
	make_file(f->h, "text", "one\ntwo\nthree\n");
	make_file(f->u, "text", "one\n2\nthree\nfour");
	make_file(f->h, "gone", "bye\n");
	make_whiteout(f->u, "gone");
	make_file(f->u, "empty", "");
	make_file(f->h, "was empty", "");
	make_whiteout(f->u, "was empty");
	make_dir(f->u, "sub");
	make_file(f->u, "sub/with blank", "x\n");
	make_file(f->u, "sub/tab\there", "# a comment\n--- not a header\n");
	make_file(f->u, "sub/\xc3\xa4", "utf-8\n");
	make_file(f->h, "run", "#!/bin/sh\n");
	make_file(f->u, "run", "#!/bin/sh\n");
	set_mode(f->u, "run", 0755);
	make_file(f->h, "both", "a\n");
	make_file(f->u, "both", "b\n");
	set_mode(f->u, "both", 0755);
	make_dir(f->h, "old");
	make_file(f->h, "old/moved", "moved content\n");
	make_whiteout(f->u, "old");
	make_file(f->u, "moved", "moved content\n");
	make_link(f->h, "link", "text");
	make_link(f->u, "link", "both");
	make_link(f->u, "newlink", "run");
	make_node(f->u, "zfifo", S_IFIFO);
	set_xattr(f->u, "run", "user.note", "x");
}

/* The same objects as lines; what patches cannot carry (empty directories, FIFOs) is left out. */
static void check_applied(const char *dir)
{
	static const struct {
		const char *path, *text;
		bool exec;
	} files[] = {
		{ "text", "one\n2\nthree\nfour", false },
		{ "empty", "", false },
		{ "sub/with blank", "x\n", false },
		{ "sub/tab\there", "# a comment\n--- not a header\n", false },
		{ "sub/\xc3\xa4", "utf-8\n", false },
		{ "run", "#!/bin/sh\n", true },
		{ "both", "b\n", true },
		{ "moved", "moved content\n", false },
	};
	static const char *const gone[] = { "gone", "was empty", "old/moved" };
	int d = open(dir, O_RDONLY | O_DIRECTORY);
	char text[256];
	size_t i;
	ssize_t n;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		int fd = openat(d, files[i].path, O_RDONLY);
		struct stat st;

		if (fd < 0)
			fail_msg("%s is not there", files[i].path);
		n = read(fd, text, sizeof(text) - 1);
		assert_true(n >= 0);
		text[n] = '\0';
		assert_string_equal(text, files[i].text);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(!!(st.st_mode & 0100), files[i].exec);
		close(fd);
	}
	for (i = 0; i < sizeof(gone) / sizeof(*gone); i++)
		if (faccessat(d, gone[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			fail_msg("%s is still there", gone[i]);
	n = readlinkat(d, "link", text, sizeof(text));
	assert_int_equal(n, 4);
	assert_memory_equal(text, "both", 4);
	n = readlinkat(d, "newlink", text, sizeof(text));
	assert_int_equal(n, 3);
	assert_memory_equal(text, "run", 3);
	close(d);
}

static void apply(struct fixture *f, const char *const tool[])
{
	char copy[128], file[128];
	const char *const cp[] = { "cp", "-a", f->host, copy, NULL };
	char *p;

	make_workspace(f);
	p = patch_of(f, NULL);
	snprintf(copy, sizeof(copy), "%s/copy", f->dir);
	snprintf(file, sizeof(file), "%s/patch", f->dir);
	make_file(AT_FDCWD, file, p);
	free(p);
	assert_int_equal(run_in("/", cp), 0);
	assert_int_equal(run_in(copy, tool), 0);
	check_applied(copy);
}

static void test_apply_with_git(void **state)
{
	static const char *const git[] = { "git", "apply", "../patch", NULL };

	apply(*state, git);
}

static void test_apply_with_patch(void **state)
{
	static const char *const patch[] = {
		"patch", "-s", "-p1", "-i", "../patch", NULL
	};

	apply(*state, patch);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_text),
		T(test_modes_links_types),
		T(test_special_objects),
		T(test_binary),
		T(test_names_are_quoted),
		T(test_rename),
		T(test_unreadable_is_said),
		T(test_name_of_a_path),
		T(test_name_status),
		T(test_apply_with_git),
		T(test_apply_with_patch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
