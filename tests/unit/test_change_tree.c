/* SPDX-License-Identifier: Apache-2.0 */
#include "change_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "diff/list.h"
#include "diff/rename.h"
#include "sys/fs.h"

/* Trees of any depth, descriptors, renames. */

/* @levels directories with long names, each with a directory and a file that sort after. */
static void make_deep(int dir, int levels, const char *text)
{
	char name[201];
	int fd = dup(dir), i;

	memset(name, 'd', 200);
	name[200] = '\0';
	for (i = 0; i < levels; i++) {
		int next;

		make_file(fd, "z", text);
		make_dir(fd, "y");
		make_dir(fd, name);
		next = openat(fd, name, O_PATH | O_DIRECTORY);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static size_t count_changes(struct fixture *f, enum change_kind kind)
{
	struct change_list l;
	int fds = count_fds();
	size_t i, n = 0;
	struct err e;

	if (change_collect(&f->layer, 1, &l, &e) < 0)
		fail_msg("%s", e.msg);
	for (i = 0; i < l.n; i++)
		n += l.v[i].c.kind == kind;
	assert_int_equal(n, l.n);
	assert_int_equal(count_fds(), fds);
	change_list_free(&l);
	return n;
}

static void deep(struct fixture *f, int levels)
{
	make_deep(f->u, levels, "new");
	assert_int_equal(count_changes(f, CHANGE_ADD), 3 * levels);
	make_deep(f->h, levels, "old");
	assert_int_equal(count_changes(f, CHANGE_MODIFY), levels);
}

static void test_deep_trees(void **state)
{
	struct fixture *f = *state;
	struct rlimit old, few = { 256, 256 };
	char first[201];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	deep(f, 1100);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	/* The host's tree deleted as a whole. */
	memset(first, 'd', 200);
	first[200] = '\0';
	assert_int_equal(renameat(f->u, first, f->h, "aside"), 0);
	make_whiteout(f->u, first);
	make_file(f->u, "z", "old");
	assert_int_equal(count_changes(f, CHANGE_DELETE), 3 * 1100 - 2);
}

/* A merged directory whose host side must be found again after a deep added one. */
static void test_reopening_both_sides(void **state)
{
	struct fixture *f = *state;
	int fd;

	make_dir(f->h, "m");
	make_file(f->h, "m/z", "old");
	make_file(f->h, "z", "old");
	make_dir(f->u, "m");
	make_file(f->u, "m/z", "new");
	make_file(f->u, "z", "new");
	make_dir(f->u, "m/a");
	fd = openat(f->u, "m/a", O_PATH | O_DIRECTORY);
	make_deep(fd, 150, "x");
	close(fd);
	{
		struct change_totals t;
		struct err e;

		assert_int_equal(change_count(&f->layer, 1, &t, &e), 0);
		assert_int_equal(t.added, 451);
		assert_int_equal(t.modified, 2);
		assert_int_equal(t.deleted, 0);
	}
}

static void test_xattr_by_descriptor(void **state)
{
	struct fixture *f = *state;
	struct buf b = BUF_INIT;
	int fd;

	make_file(f->h, "x", "x");
	set_xattr(f->h, "x", "user.a", "value");
	fd = openat(f->h, "x", O_PATH | O_NOFOLLOW);
	assert_int_equal(fs_fd_xattr_list(fd, &b), 0);
	assert_memory_equal(b.data, "user.a", 7);
	assert_int_equal(fs_fd_xattr_get(fd, "user.a", &b), 0);
	assert_string_equal(buf_str(&b), "value");
	assert_int_equal(fs_fd_xattr_get(fd, "user.b", &b), -ENODATA);
	assert_int_equal(fs_xattr_get(f->h, "x", "user.a", &b), 0);
	assert_string_equal(buf_str(&b), "value");
	close(fd);
	buf_free(&b);
}

static void test_open_beneath(void **state)
{
	struct fixture *f = *state;
	int fd;

	make_dir(f->h, "d");
	make_file(f->h, "d/f", "x");
	make_link(f->h, "l", "d");
	make_link(f->h, "d/l", "f");
	make_node(f->h, "p", S_IFIFO);
	fd = fs_open_beneath(f->h, "d/f", O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(fs_open_beneath(f->h, "l/f", O_RDONLY), -ELOOP);
	assert_int_equal(fs_open_beneath(f->h, "d/l", O_RDONLY), -ELOOP);
	assert_int_equal(fs_open_beneath(f->h, "../up", O_RDONLY), -EXDEV);
	assert_int_equal(fs_open_beneath(f->h, "/etc", O_RDONLY), -EXDEV);
	fd = fs_open_beneath(f->h, "p", O_RDONLY); /* does not wait for a writer */
	assert_true(fd >= 0);
	close(fd);
	fd = fs_open_beneath(f->h, "d/l", O_PATH);
	assert_true(fd >= 0);
	close(fd);
}

/* Index of a relative path. */
static size_t find(const struct change_list *l, const char *rel)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (!strcmp(l->v[i].c.rel, rel))
			return i;
	fail_msg("%s is not in the list", rel);
	return 0;
}

static void test_renames(void **state)
{
	static const struct {
		const char *to, *from;
	} expected[] = {
		{ "new/one", "old/one" }, /* by base name, whatever comes first */
		{ "new/two", "old/two" },
		{ "new/three", "old/3" }, /* by content alone */
		{ "new/link", "old/link" },
		{ "new/q1", "old/p2" }, /* one size, two contents */
		{ "new/q2", "old/p1" },
		{ "new/empty", NULL },
		{ "new/samesize", NULL },
		{ "new/extra", NULL }, /* two additions, one deletion */
	};
	struct fixture *f = *state;
	struct change_list l;
	struct err e;
	size_t i;

	make_dir(f->h, "old");
	make_file(f->h, "old/two", "copies");
	make_file(f->h, "old/one", "copies");
	make_file(f->h, "old/3", "third text");
	make_file(f->h, "old/empty", "");
	make_file(f->h, "old/size", "abcd");
	make_link(f->h, "old/link", "target");
	make_file(f->h, "old/p1", "size and one");
	make_file(f->h, "old/p2", "size and two");
	make_whiteout(f->u, "old");
	make_dir(f->u, "new");
	make_file(f->u, "new/q1", "size and two");
	make_file(f->u, "new/q2", "size and one");
	make_file(f->u, "new/one", "copies");
	make_file(f->u, "new/two", "copies");
	make_file(f->u, "new/extra", "copies");
	make_file(f->u, "new/three", "third text");
	make_file(f->u, "new/empty", "");
	make_file(f->u, "new/samesize", "abce");
	make_link(f->u, "new/link", "target");
	assert_int_equal(change_collect(&f->layer, 1, &l, &e), 0);
	assert_int_equal(change_find_renames(&f->layer, &l, &e), 0);
	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct change_item *it = &l.v[find(&l, expected[i].to)];

		if (!expected[i].from) {
			assert_true(it->renamed_from == SIZE_MAX);
			assert_int_equal(change_letter(it), 'A');
			continue;
		}
		assert_true(it->renamed_from < l.n);
		assert_string_equal(l.v[it->renamed_from].c.rel, expected[i].from);
		assert_true(l.v[it->renamed_from].renamed_away);
		assert_int_equal(change_letter(it), 'R');
	}
	assert_false(l.v[find(&l, "old/size")].renamed_away);
	assert_false(l.v[find(&l, "old/empty")].renamed_away);
	change_list_free(&l);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_deep_trees),
		T(test_reopening_both_sides),
		T(test_xattr_by_descriptor),
		T(test_open_beneath),
		T(test_renames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
