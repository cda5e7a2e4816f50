/* SPDX-License-Identifier: Apache-2.0 */
#include "change_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "diff/compare.h"
#include "diff/list.h"
#include "diff/walk.h"

enum host_is { H_NONE, H_FILE, H_EMPTY, H_FULL, H_LINK, H_FIFO, H_KINDS };
enum upper_is {
	U_NONE,
	U_WHITEOUT,
	U_SAME,
	U_OTHER,
	U_MERGED,
	U_OPAQUE,
	U_LINK,
	U_FIFO,
	U_SOCKET,
	U_KINDS
};

static void make_host(int h, enum host_is is)
{
	switch (is) {
	case H_FILE:
		make_file(h, "x", "same\n");
		break;
	case H_FULL:
	case H_EMPTY:
		make_dir(h, "x");
		if (is == H_FULL)
			make_file(h, "x/k", "kept\n");
		break;
	case H_LINK:
		make_link(h, "x", "there");
		break;
	case H_FIFO:
		make_node(h, "x", S_IFIFO);
		break;
	default:
		break;
	}
}

static void make_upper(int u, enum upper_is is)
{
	switch (is) {
	case U_WHITEOUT:
		make_whiteout(u, "x");
		break;
	case U_SAME:
		make_file(u, "x", "same\n");
		break;
	case U_OTHER:
		make_file(u, "x", "diff\n");
		break;
	case U_MERGED:
		make_dir(u, "x");
		break;
	case U_OPAQUE:
		make_opaque(u, "x");
		make_file(u, "x/n", "new\n");
		break;
	case U_LINK:
		make_link(u, "x", "where");
		break;
	case U_FIFO:
		make_node(u, "x", S_IFIFO);
		break;
	case U_SOCKET:
		make_node(u, "x", S_IFSOCK);
		break;
	default:
		break;
	}
}

static void test_every_pair(void **state)
{
	/* clang-format off */
	static const char *const expected[H_KINDS][U_KINDS] = {
		[H_NONE] = { "", "", "Ax", "Ax", "Ax", "Ax Ax/n*", "Ax", "Ax", "Ax" },
		[H_FILE] = { "", "Dx", "", "Mx:c", "Tx", "Tx Ax/n*", "Tx", "Tx", "Tx" },
		[H_EMPTY] = { "", "Dx", "Tx", "Tx", "", "Ax/n", "Tx", "Tx", "Tx" },
		[H_FULL] = { "", "Dx/k* Dx", "Dx/k* Tx", "Dx/k* Tx", "", "Dx/k Ax/n",
			     "Dx/k* Tx", "Dx/k* Tx", "Dx/k* Tx" },
		[H_LINK] = { "", "Dx", "Tx", "Tx", "Tx", "Tx Ax/n*", "Mx:c", "Tx", "Tx" },
		[H_FIFO] = { "", "Dx", "Tx", "Tx", "Tx", "Tx Ax/n*", "Tx", "", "Tx" },
	};
	/* clang-format on */
	int h, u;

	(void)state;
	for (h = 0; h < H_KINDS; h++) {
		for (u = 0; u < U_KINDS; u++) {
			struct fixture *f;
			void *s;
			char *words;

			fixture_setup(&s);
			f = s;
			make_host(f->h, h);
			make_upper(f->u, u);
			words = walk_words(&f->layer, 1);
			if (strcmp(words, expected[h][u]) != 0)
				fail_msg("host %d, upper %d: \"%s\", not \"%s\"", h, u,
					 words, expected[h][u]);
			free(words);
			fixture_teardown(&s);
		}
	}
}

static void test_order_and_depth_of_additions_and_deletions(void **state)
{
	struct fixture *f = *state;

	make_dir(f->h, "d");
	make_dir(f->h, "d/e");
	make_file(f->h, "d/e/1", "1");
	make_file(f->h, "d/z", "1");
	make_whiteout(f->u, "d");
	make_dir(f->u, "n");
	make_dir(f->u, "n/b");
	make_file(f->u, "n/b/2", "2");
	make_file(f->u, "n/a", "2");
	make_whiteout(f->u, "n/c"); /* over nothing */
	make_opaque(f->u, "n/o");
	make_file(f->u, "B", "upper case first");
	check_walk(f, "AB Dd/e/1* Dd/e* Dd/z* Dd An An/a* An/b* An/b/2* An/o*");
}

static void test_opaque_inside_merged(void **state)
{
	struct fixture *f = *state;

	make_dir(f->h, "m");
	make_dir(f->h, "m/o");
	make_dir(f->h, "m/o/sub");
	make_file(f->h, "m/o/sub/f", "f");
	make_file(f->h, "m/o/same", "same");
	make_dir(f->h, "m/o/kept");
	make_file(f->h, "m/o/kept/inner", "x");
	make_file(f->h, "m/untouched", "x");
	make_dir(f->u, "m");
	set_xattr(f->u, "m", "user.overlay.impure", "y");
	make_opaque(f->u, "m/o");
	make_file(f->u, "m/o/same", "same");
	make_whiteout(f->u, "m/o/ghost");
	/* Beneath an opaque directory a plain one merges with nothing, but is compared. */
	make_opaque(f->u, "m/o/kept");
	make_file(f->u, "m/o/kept/other", "x");
	check_walk(f, "Dm/o/kept/inner Am/o/kept/other Dm/o/sub/f* Dm/o/sub");
}

static void test_plain_directory_beneath_opaque_hides_the_host(void **state)
{
	struct fixture *f = *state;

	make_dir(f->h, "o");
	make_dir(f->h, "o/d");
	make_file(f->h, "o/d/old", "x");
	make_file(f->h, "o/d/same", "x");
	make_opaque(f->u, "o");
	/* The overlay looks no further down than the opaque directory. */
	make_dir(f->u, "o/d");
	make_file(f->u, "o/d/same", "x");
	make_file(f->u, "o/d/new", "x");
	check_walk(f, "Ao/d/new Do/d/old");
}

static void test_what_differs(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "1mode", "2times", "3xattr", "4all",
					     "5none" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		make_file(f->h, names[i], "text");
		make_file(f->u, names[i], "text");
		set_xattr(f->u, names[i], "user.overlay.origin", "x");
	}
	set_mode(f->u, "1mode", 0755);
	set_mtime(f->u, "2times", 5);
	set_xattr(f->u, "3xattr", "user.a", "1");
	set_mode(f->u, "4all", 04700);
	set_mtime(f->u, "4all", 5);
	set_xattr(f->h, "4all", "user.a", "1");
	make_file(f->u, "4all", "texts");
	set_mtime(f->u, "4all", 5);
	set_xattr(f->h, "5none", "user.b", "same");
	set_xattr(f->u, "5none", "user.b", "same");
	set_xattr(f->h, "5none", "user.overlay.metacopy", "the host's own upper");
	make_dir(f->h, "6dir");
	make_dir(f->u, "6dir");
	set_mtime(f->u, "6dir", 5);
	make_dir(f->h, "7dir");
	make_dir(f->u, "7dir");
	set_mode(f->u, "7dir", 0700);
	make_link(f->h, "8link", "longer");
	make_link(f->u, "8link", "long");
	check_walk(f, "M1mode:m M2times:t M3xattr:x M4all:cmxt M7dir:m M8link:c");
	f->layer.brief = true;
	check_walk(f, "M1mode:m M2times:t M3xattr:x M4all:cmt M7dir:m M8link:c");
}

static int count_bare(void *arg, const struct change *c, struct err *e)
{
	(void)e;
	*(int *)arg += c->bare;
	return 0;
}

/* That the host's attributes are not read says nothing of those in the upper. */
static void test_bare(void **state)
{
	struct fixture *f = *state;
	struct err e;
	int n;

	make_file(f->h, "marked", "text");
	make_file(f->u, "marked", "other");
	set_xattr(f->u, "marked", "user.overlay.origin", "x");
	make_file(f->h, "plain", "text");
	make_file(f->u, "plain", "other");
	set_xattr(f->h, "plain", "user.a", "1");
	for (int brief = 0; brief < 2; brief++) {
		f->layer.brief = brief;
		n = 0;
		assert_int_equal(change_walk(&f->layer, 1, count_bare, &n, &e), 0);
		assert_int_equal(n, 1);
	}
}

static void test_xattr_table(void **state)
{
	static const struct {
		const char *host_attr, *host_value, *up_attr, *up_value;
		bool differs;
	} cases[] = {
		{ "user.a", "1", "user.a", "1", false },
		{ "user.a", "1", "user.a", "2", true },
		{ "user.a", "1", "user.a", "11", true },
		{ "user.a", "1", NULL, NULL, true },
		{ NULL, NULL, "user.a", "1", true },
		{ "user.a", "1", "user.b", "1", true },
		{ NULL, NULL, "user.overlay.origin", "1", false },
		{ "user.overlay.upper", "1", NULL, NULL, false },
		{ NULL, NULL, "user.overlay.overlay.a", "1", true },
		{ "user.overlay.a", "1", "user.overlay.overlay.a", "1", false },
		{ "user.overlay.a", "1", "user.overlay.overlay.a", "2", true },
		{ "user.overlay.overlay.a", "1", "user.overlay.overlay.a", "1", false },
		{ "user.overlay.overlay.a", "1", NULL, NULL, true },
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *words;

		make_file(f->h, "x", "x");
		make_file(f->u, "x", "x");
		if (cases[i].host_attr)
			set_xattr(f->h, "x", cases[i].host_attr, cases[i].host_value);
		if (cases[i].up_attr)
			set_xattr(f->u, "x", cases[i].up_attr, cases[i].up_value);
		words = walk_words(&f->layer, 1);
		if (strcmp(words, cases[i].differs ? "Mx:x" : "") != 0)
			fail_msg("case %zu: \"%s\"", i, words);
		free(words);
		assert_int_equal(unlinkat(f->h, "x", 0), 0);
		assert_int_equal(unlinkat(f->u, "x", 0), 0);
	}
}

static void test_big_xattrs(void **state)
{
	struct fixture *f = *state;
	char value[3001], name[64];
	int i;

	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	make_file(f->h, "x", "x");
	make_file(f->u, "x", "x");
	set_xattr(f->h, "x", "user.big", value);
	set_xattr(f->u, "x", "user.big", value);
	check_walk(f, "");
	value[2999] = 'w';
	set_xattr(f->u, "x", "user.big", value);
	check_walk(f, "Mx:x");
	make_file(f->h, "y", "y");
	make_file(f->u, "y", "y");
	for (i = 0; i < 60; i++) { /* a list of more than a kilobyte */
		snprintf(name, sizeof(name), "user.a-rather-long-name.%d", i);
		set_xattr(f->h, "y", name, "1");
		set_xattr(f->u, "y", name, "1");
	}
	check_walk(f, "Mx:x");
}

static void test_owner_rules(void **state)
{
	static const struct {
		bool lax;
		uid_t up_uid;
		gid_t up_gid;
		uid_t host_uid;
		gid_t host_gid;
		bool same;
	} cases[] = {
		{ false, 1000, 1000, 1000, 1000, true },
		{ false, 1000, 1000, 1000, 50, false },
		{ false, 1000, 1000, 0, 1000, false },
		{ true, 1000, 1000, 1000, 50, true },
		{ true, 1000, 1000, 0, 0, true },
		{ true, 1000, 60, 1000, 50, false },
		{ true, 2000, 1000, 1000, 1000, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct change_layer l = { .lax_owner = cases[i].lax,
					  .uid = 1000,
					  .gid = 1000 };
		struct stat up = { .st_uid = cases[i].up_uid, .st_gid = cases[i].up_gid };
		struct stat host = { .st_uid = cases[i].host_uid,
				     .st_gid = cases[i].host_gid };

		if (compare_owner(&l, &up, &host) != cases[i].same)
			fail_msg("case %zu", i);
	}
}

static void test_foreign_owner(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0) {
		/* Only root can give files away; the rules above hold for everybody. */
		check_walk(f, "");
		return;
	}
	make_file(f->h, "f", "x");
	make_file(f->u, "f", "x");
	make_dir(f->h, "d");
	make_dir(f->u, "d");
	set_mode(f->u, "d", 0555);
	assert_int_equal(fchownat(f->h, "f", 4000, 4000, 0), 0);
	assert_int_equal(fchownat(f->h, "d", 4000, 4000, 0), 0);
	check_walk(f, "Md:mo Mf:o");
	f->layer.lax_owner = true;
	check_walk(f, "");
	set_mode(f->u, "d", 0575);
	check_walk(f, "Md:m");
}

static void test_names(void **state)
{
	struct fixture *f = *state;
	char longest[256];
	struct change_list l;
	struct err e;

	memset(longest, 'n', 255);
	longest[255] = '\0';
	make_file(f->u, "a\nb", "x");
	make_file(f->u, "\xff\xfe", "x");
	make_file(f->u, " ", "x");
	make_file(f->h, longest, "x");
	make_whiteout(f->u, longest);
	assert_int_equal(change_collect(&f->layer, 1, &l, &e), 0);
	assert_int_equal(l.n, 4);
	assert_string_equal(l.v[0].c.rel, " ");
	assert_string_equal(l.v[1].c.rel, "a\nb");
	assert_string_equal(l.v[2].c.rel, longest);
	assert_int_equal(l.v[2].c.kind, CHANGE_DELETE);
	assert_string_equal(l.v[3].c.rel, "\xff\xfe"); /* byte order, not signed */
	change_list_free(&l);
	assert_null(l.v);
}

static void test_content(void **state)
{
	enum { SIZE = 400000 };
	static const size_t places[] = { 0, 131071, 131072, 262143, 300000, SIZE - 1 };
	struct fixture *f = *state;
	char *data = xcalloc(1, SIZE);
	size_t i;

	for (i = 0; i < SIZE; i++)
		data[i] = (char)(i * 7);
	make_bytes(f->h, "x", data, SIZE);
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		data[places[i]] ^= 1;
		make_bytes(f->u, "x", data, SIZE);
		check_walk(f, "Mx:c");
		data[places[i]] ^= 1;
		make_bytes(f->u, "x", data, SIZE);
		check_walk(f, "");
	}
	make_bytes(f->u, "x", data, SIZE - 1);
	check_walk(f, "Mx:c");
	make_bytes(f->u, "x", data, 0);
	check_walk(f, "Mx:c");
	free(data);
}

static void make_sparse(int dir, const char *name, off_t size, off_t at, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	if (text)
		assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
	close(fd);
	set_mtime(dir, name, 1000000);
}

/* Would take minutes if holes were read. */
static void test_sparse(void **state)
{
	const off_t size = (off_t)200 << 30;
	struct fixture *f = *state;

	make_sparse(f->h, "x", size, size / 2, "data");
	make_sparse(f->u, "x", size, size / 2, "data");
	check_walk(f, "");
	make_sparse(f->u, "x", size, size / 2, "date");
	check_walk(f, "Mx:c");
	make_sparse(f->u, "x", size, size / 2 + (1 << 20), "data");
	check_walk(f, "Mx:c");
	make_sparse(f->u, "x", size, 0, NULL);
	check_walk(f, "Mx:c");
	make_sparse(f->h, "x", 1 << 20, 0, NULL); /* a hole is equal to written zeros */
	make_sparse(f->u, "x", 1 << 20, 0, NULL);
	{
		char *zeros = xcalloc(1, 1 << 20);

		make_bytes(f->u, "x", zeros, 1 << 20);
		free(zeros);
	}
	check_walk(f, "");
}

static void test_hard_links_and_whiteout_links(void **state)
{
	struct fixture *f = *state;

	make_file(f->h, "a", "x");
	make_file(f->h, "b", "x");
	make_file(f->h, "c", "x");
	make_file(f->u, "a", "x");
	assert_int_equal(linkat(f->u, "a", f->u, "b", 0), 0);
	make_whiteout(f->u, "c");
	assert_int_equal(linkat(f->u, "c", f->u, "nothing-there", 0), 0);
	check_walk(f, "Dc");
}

static void test_links_are_not_followed(void **state)
{
	struct fixture *f = *state;

	/* The host directory became a link to a directory with the upper's names. */
	make_dir(f->h, "real");
	make_file(f->h, "real/x", "same");
	make_link(f->h, "d", "real");
	make_dir(f->u, "d");
	make_file(f->u, "d/x", "same");
	make_link(f->u, "real", "/");
	check_walk(f, "Td Ad/x* Dreal/x* Treal");
}

static void test_unreadable(void **state)
{
	struct fixture *f = *state;

	make_file(f->h, "f", "x");
	make_file(f->u, "f", "x");
	set_mode(f->u, "f", 0);
	/* What an ordinary user may not read counts as changed; root reads everything. */
	check_walk(f, geteuid() == 0 ? "Mf:m" : "Mf:cm");
	/* His own directory he sees into all the same. */
	make_dir(f->u, "shut");
	make_file(f->u, "shut/x", "x");
	set_mode(f->u, "shut", 0);
	check_walk(f, geteuid() == 0 ? "Mf:m Ashut Ashut/x*" : "Mf:cm Ashut Ashut/x*");
	set_mode(f->u, "shut", 0755);
}

static void test_errors_name_the_layer(void **state)
{
	struct fixture *f = *state;
	struct change_list l;
	struct err e;

	f->layer.upper = "/nonexistent/upper";
	assert_int_equal(change_collect(&f->layer, 1, &l, &e), -1);
	assert_int_equal(e.kind, ERR_SYSTEM);
	assert_int_equal(e.sys, ENOENT);
	assert_non_null(strstr(e.msg, "/nonexistent/upper"));
}

static void test_host_that_is_gone(void **state)
{
	struct fixture *f = *state;

	make_dir(f->u, "d");
	make_file(f->u, "d/f", "x");
	make_whiteout(f->u, "w");
	f->layer.host = "/nonexistent/host";
	check_walk(f, "Ad Ad/f*");
}

static void test_hidden(void **state)
{
	struct fixture *f = *state;
	char a[128], b[128], c[128], d[128];
	const char *const hidden[] = { a, b, c, d, NULL };

	snprintf(a, sizeof(a), "%s/secret", f->host);
	snprintf(b, sizeof(b), "%s/gone/secret", f->host);
	snprintf(c, sizeof(c), "%s/again/secret", f->host);
	snprintf(d, sizeof(d), "%s/untouched", f->host);
	f->layer.hidden = hidden;
	make_dir(f->h, "secret");
	make_file(f->h, "secret/key", "x");
	make_opaque(f->u, "secret");
	make_file(f->u, "secret/mine", "x");
	make_dir(f->h, "gone");
	make_dir(f->h, "gone/secret");
	make_file(f->h, "gone/secret/key", "x");
	make_file(f->h, "gone/plain", "x");
	make_whiteout(f->u, "gone");
	make_dir(f->h, "again");
	make_file(f->h, "again/secret", "x");
	make_opaque(f->u, "again");
	make_file(f->h, "untouched", "x");
	check_walk(f, "Dagain/secret! Dgone/plain* Dgone/secret*! Dgone Asecret! "
		      "Asecret/mine*!");
}

static void test_two_layers_and_filter(void **state)
{
	struct fixture *f = *state;
	struct change_layer layers[2] = { f->layer, f->layer };
	char up2[128], host2[128], in[128], in2[160], none[128];
	const char *paths[4] = { NULL };
	struct change_list l;
	struct err e;

	make_dir(f->h, "a");
	make_dir(f->h, "a/b");
	make_file(f->h, "a/b/deleted", "x");
	make_file(f->h, "a/c", "x");
	make_whiteout(f->u, "a");
	make_file(f->u, "ab", "x");
	make_dir(f->u, "n");
	make_file(f->u, "n/f", "x");
	snprintf(up2, sizeof(up2), "%s/up2", f->dir);
	snprintf(host2, sizeof(host2), "%s/host2", f->dir);
	make_dir(AT_FDCWD, up2);
	make_dir(AT_FDCWD, host2);
	snprintf(in2, sizeof(in2), "%s/z", up2);
	make_file(AT_FDCWD, in2, "x");
	layers[1].upper = up2;
	layers[1].host = host2;
	assert_int_equal(change_collect(layers, 2, &l, &e), 0);
	assert_int_equal(l.n, 8);
	assert_int_equal(l.v[7].c.layer, 1);
	assert_string_equal(l.v[7].c.rel, "z");
	change_list_free(&l);

	snprintf(in, sizeof(in), "%s/a/b", f->host);
	snprintf(none, sizeof(none), "%s/n/other", f->host);
	paths[0] = in;
	paths[1] = none;
	assert_int_equal(change_collect_paths(layers, 2, paths, &l, &e), 0);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].c.rel, "a/b/deleted");
	assert_true(l.v[0].c.implied);
	assert_string_equal(l.v[1].c.rel, "a/b");
	change_list_free(&l);
	snprintf(in, sizeof(in), "%s/a", f->host); /* not "ab" */
	assert_int_equal(change_collect_paths(layers, 2, paths, &l, &e), 0);
	assert_int_equal(l.n, 4);
	change_list_free(&l);
	paths[0] = host2;
	paths[1] = NULL;
	assert_int_equal(change_collect_paths(layers, 2, paths, &l, &e), 0);
	assert_int_equal(l.n, 1);
	change_list_free(&l);
	paths[0] = "/"; /* everything */
	assert_int_equal(change_collect_paths(layers, 2, paths, &l, &e), 0);
	assert_int_equal(l.n, 8);
	change_list_free(&l);
}

static void test_totals(void **state)
{
	struct fixture *f = *state;
	struct change_totals t;
	struct err e;

	make_file(f->u, "new", "12345");
	make_dir(f->u, "dir");
	make_file(f->h, "changed", "1");
	make_file(f->u, "changed", "123");
	make_file(f->h, "touched", "1");
	make_file(f->u, "touched", "1");
	set_mtime(f->u, "touched", 7);
	make_file(f->h, "retyped", "1");
	make_link(f->u, "retyped", "1");
	make_file(f->h, "gone", "1234567");
	make_whiteout(f->u, "gone");
	assert_int_equal(change_count(&f->layer, 1, &t, &e), 0);
	assert_int_equal(t.added, 2);
	assert_int_equal(t.modified, 2);
	assert_int_equal(t.deleted, 1);
	assert_int_equal(t.bytes, 8);
}

static int stop_at_second(void *arg, const struct change *c, struct err *e)
{
	int *n = arg;

	(void)c;
	(void)e;
	return ++*n == 2 ? 42 : 0;
}

static void test_stop(void **state)
{
	struct fixture *f = *state;
	struct err e;
	int n = 0;

	make_dir(f->u, "a");
	make_dir(f->u, "a/b");
	make_file(f->u, "c", "x");
	assert_int_equal(change_walk(&f->layer, 1, stop_at_second, &n, &e), 42);
	assert_int_equal(n, 2);
}

/* With `rough` a large file is not read if its mtime differs: changed, until somebody reads. */
static void test_rough(void **state)
{
	struct fixture *f = *state;
	static char text[(1 << 20) + 1];

	memset(text, 'x', sizeof(text));
	make_bytes(f->h, "large", text, sizeof(text));
	make_bytes(f->u, "large", text, sizeof(text));
	make_bytes(f->h, "small", text, sizeof(text) - 1);
	make_bytes(f->u, "small", text, sizeof(text) - 1);
	make_bytes(f->h, "still", text, sizeof(text));
	make_bytes(f->u, "still", text, sizeof(text));
	set_mtime(f->u, "large", 5);
	set_mtime(f->u, "small", 5);
	check_walk(f, "Mlarge:t Msmall:t");
	f->layer.rough = true;
	check_walk(f, "Mlarge:ct Msmall:t");
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_pair),
		T(test_order_and_depth_of_additions_and_deletions),
		T(test_opaque_inside_merged),
		T(test_plain_directory_beneath_opaque_hides_the_host),
		T(test_what_differs),
		T(test_bare),
		T(test_xattr_table),
		T(test_big_xattrs),
		T(test_owner_rules),
		T(test_foreign_owner),
		T(test_names),
		T(test_content),
		T(test_sparse),
		T(test_rough),
		T(test_hard_links_and_whiteout_links),
		T(test_links_are_not_followed),
		T(test_unreadable),
		T(test_errors_name_the_layer),
		T(test_host_that_is_gone),
		T(test_hidden),
		T(test_two_layers_and_filter),
		T(test_totals),
		T(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
