/* SPDX-License-Identifier: Apache-2.0 */
/* What is told about a layer makes of its state what walking it would. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "change_fixture.h"
#include "ckpt/ckpt.h"
#include "ckpt/rescan.h"
#include "ckpt/scan.h"
#include "ckpt/state.h"
#include "ckpt/watch.h"
#include "sys/kernel.h"

struct place {
	struct fixture *f;
	struct ck_layer layer;
	struct ck_layers layers;
	char top[96];
};

static int up; /* of the test that runs */

static void open_place(struct place *p, void **state)
{
	*p = (struct place){ .f = *state };
	up = p->f->u;
	make_file(up, "a", "aaaa");
	make_file(up, "b", "bbbb");
	make_dir(up, "d");
	make_file(up, "d/f", "ffff");
	make_dir(up, "d/e");
	make_file(up, "d/e/g", "gggg");
	make_dir(up, "empty");
	make_file(up, "two", "2222");
	assert_int_equal(linkat(up, "two", up, "d/two", 0), 0);
	snprintf(p->top, sizeof(p->top), "%s/objects", p->f->dir);
	assert_int_equal(mkdir(p->top, 0700), 0);
	p->layer = (struct ck_layer){ .up = up,
				      .host = p->f->h,
				      .objects = open(p->top, O_RDONLY | O_DIRECTORY),
				      .path = p->f->host,
				      .live = -1,
				      .past = -1 };
	assert_true(p->layer.objects >= 0);
	p->layers = (struct ck_layers){ &p->layer, 1 };
}

static void write_to(const char *name, const char *text)
{
	int fd = openat(up, name, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
	close(fd);
}

static void move_to(const char *a, const char *b, unsigned flags)
{
	assert_int_equal(renameat2(up, a, up, b, flags), 0);
}

static void nothing(void)
{
}
static void edit(void)
{
	write_to("a", "AA");
	write_to("d/e/g", "GG");
}
static void cut(void)
{
	int fd = openat(up, "d/f", O_WRONLY | O_TRUNC);

	close(fd);
}
static void chmod_file(void)
{
	set_mode(up, "d/f", 0600);
}
static void chmod_dir(void)
{
	set_mode(up, "d/e", 0700);
}
static void chmod_root(void)
{
	set_mode(up, ".", 0711);
}
static void stamp_dir(void)
{
	set_mtime(up, "d", 12345);
}
static void tag(void)
{
	set_xattr(up, "d/f", "user.t", "x");
	set_xattr(up, "d", "user.t", "x");
}
static void opaque(void)
{
	make_opaque(up, "o");
	set_xattr(up, "d", "user.overlay.opaque", "y");
}
static void create(void)
{
	make_file(up, "new", "n");
	make_file(up, "d/e/new", "n");
}
static void create_tree(void)
{
	make_dir(up, "t");
	make_dir(up, "t/u");
	make_file(up, "t/u/v", "v");
	write_to("t/u/v", "w");
	set_mode(up, "t/u", 0700);
}
static void remove_file(void)
{
	assert_int_equal(unlinkat(up, "a", 0), 0);
	assert_int_equal(unlinkat(up, "d/e/g", 0), 0);
}
static void remove_dir(void)
{
	assert_int_equal(unlinkat(up, "empty", AT_REMOVEDIR), 0);
}
static void whiteout(void)
{
	assert_int_equal(unlinkat(up, "a", 0), 0);
	make_whiteout(up, "a");
}
static void links(void)
{
	make_link(up, "s", "a");
	make_node(up, "d/p", S_IFIFO);
}
static void rename_over(void)
{
	move_to("a", "d/f", 0);
}
static void rename_dir(void)
{
	move_to("d/e", "x", 0);
	write_to("x/g", "moved");
}
static void rename_there_and_back(void)
{
	move_to("d/e", "x", 0);
	move_to("x", "d/e", 0);
	write_to("d/e/g", "back");
	make_file(up, "d/e/h", "h");
}
static void change_places(void)
{
	move_to("empty", "d/e", RENAME_EXCHANGE);
	make_file(up, "d/e/h", "h");
}
static void become_dir(void)
{
	assert_int_equal(unlinkat(up, "a", 0), 0);
	make_dir(up, "a");
	make_file(up, "a/in", "in");
}
static void become_file(void)
{
	assert_int_equal(unlinkat(up, "d/e/g", 0), 0);
	assert_int_equal(unlinkat(up, "d/e", AT_REMOVEDIR), 0);
	make_file(up, "d/e", "file");
}
static void made_and_gone(void)
{
	make_dir(up, "t");
	make_file(up, "t/v", "v");
	assert_int_equal(unlinkat(up, "t/v", 0), 0);
	assert_int_equal(unlinkat(up, "t", AT_REMOVEDIR), 0);
}
static void link_one(void)
{
	assert_int_equal(linkat(up, "a", up, "d/a", 0), 0);
}
static void unlink_one(void)
{
	assert_int_equal(unlinkat(up, "two", 0), 0);
}
static void edit_one(void)
{
	write_to("two", "22");
}
static void move_one_with_its_dir(void)
{
	move_to("d/two", "d/e/two", 0);
	move_to("d/e", "x", 0);
}

static void work_in_new_tree(void)
{
	make_file(up, "t/u/w", "w");
	make_dir(up, "t/u/x");
	set_mode(up, "t/u/v", 0600);
}
static void work_in_changed(void)
{
	write_to("empty/g", "GG");
	write_to("d/e/h", "H");
	make_file(up, "empty/new", "n");
}
static void work_in_renamed(void)
{
	make_file(up, "x/new", "n");
	assert_int_equal(unlinkat(up, "x/g", 0), 0);
}

static const struct {
	const char *name;
	void (*work)(void);
	void (*later)(void); /* after that was looked at; NULL: nothing */
	int result;	     /* 1: it takes a walk */
} table[] = {
	{ "nothing", nothing, NULL, 0 },
	{ "edit", edit, NULL, 0 },
	{ "cut", cut, NULL, 0 },
	{ "mode of a file", chmod_file, NULL, 0 },
	{ "mode of a directory", chmod_dir, NULL, 0 },
	{ "mode of the layer", chmod_root, NULL, 0 },
	{ "time of a directory", stamp_dir, NULL, 0 },
	{ "attributes", tag, NULL, 0 },
	{ "opaque", opaque, NULL, 0 },
	{ "new files", create, NULL, 0 },
	{ "a new tree", create_tree, NULL, 0 },
	{ "removed files", remove_file, NULL, 0 },
	{ "a removed directory", remove_dir, NULL, 0 },
	{ "a whiteout", whiteout, NULL, 0 },
	{ "a link and a pipe", links, NULL, 0 },
	{ "renamed over another", rename_over, NULL, 0 },
	{ "a renamed directory", rename_dir, NULL, 0 },
	{ "renamed there and back", rename_there_and_back, NULL, 0 },
	{ "two change places", change_places, NULL, 0 },
	{ "a file becomes a directory", become_dir, NULL, 0 },
	{ "a directory becomes a file", become_file, NULL, 0 },
	{ "made and gone", made_and_gone, NULL, 0 },
	{ "a new tree, and work in it", create_tree, work_in_new_tree, 0 },
	{ "a renamed directory, and work in it", rename_dir, work_in_renamed, 0 },
	{ "changed places, and work there", change_places, work_in_changed, 0 },
	{ "edited twice", edit, edit, 0 },
	{ "a second name", link_one, NULL, 1 },
	{ "one of two names goes", unlink_one, NULL, 1 },
	{ "written through one of two names", edit_one, NULL, 1 },
	{ "one of two names moves with its directory", move_one_with_its_dir, NULL, 1 },
};

static bool same_entry(const struct ck_entry *a, const struct ck_entry *b)
{
	return strcmp(a->rel, b->rel) == 0 && a->id.ino == b->id.ino &&
	       a->id.ctime == b->id.ctime && a->id.nlink == b->id.nlink &&
	       (a->flags & CK_OPAQUE) == (b->flags & CK_OPAQUE) && ck_same(a, b);
}

/* Walking once more finds nothing that is not known. */
static void check_exact(const struct place *p, const struct ck_state *now,
			const char *name)
{
	struct ck_scan s = { .layers = &p->layers, .prev = now, .copy = true };
	struct ck_state seen;
	struct err e;

	assert_int_equal(ck_scan(&s, &seen, &e), 0);
	if (s.copied || seen.n != now->n)
		fail_msg("%s: %zu names, %zu by walking, %llu copied", name, now->n,
			 seen.n, (unsigned long long)s.copied);
	for (size_t i = 0; i < seen.n; i++)
		if (!same_entry(seen.v[i], now->v[i]))
			fail_msg("%s: %s is not what it was said to be", name,
				 seen.v[i]->rel);
	ck_state_free(&seen);
}

static int look_at_told(struct ck_scan *s, struct ck_state *now)
{
	struct ck_paths changed = { 0 };
	struct err e;
	int r;

	assert_true(ck_watch_read(s->watch, &changed));
	r = ck_rescan(s, &changed, now, &e);
	ck_paths_free(&changed);
	return r;
}

static void test_told(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct ck_scan s = { .copy = true,
				     .early = true,
				     .watch = ck_watch_new() };
		struct ck_state now;
		struct place p;
		struct err e;

		if (i)
			assert_int_equal(fixture_setup(state), 0);
		open_place(&p, state);
		s.layers = &p.layers;
		assert_non_null(s.watch);
		assert_int_equal(ck_scan(&s, &now, &e), 0);
		table[i].work();
		if (table[i].later) {
			assert_int_equal(look_at_told(&s, &now), 0);
			table[i].later();
		}
		s.early = false;
		if (look_at_told(&s, &now) != table[i].result)
			fail_msg("%s", table[i].name);
		if (!table[i].result)
			check_exact(&p, &now, table[i].name);
		ck_watch_free(s.watch);
		ck_state_free(&now);
		close(p.layer.objects);
		fixture_teardown(state);
	}
	assert_int_equal(fixture_setup(state), 0);
}

/* A file that is mapped is read again, and so are its other names; they stay one file. */
static void test_forced(void **state)
{
	struct ck_paths again = { 0 };
	struct ck_scan s = { .copy = true };
	struct ck_state now;
	struct place p;
	struct err e;
	const struct ck_entry *a, *b;

	open_place(&p, state);
	s.layers = &p.layers;
	assert_int_equal(ck_scan(&s, &now, &e), 0);
	a = ck_find(&now, 0, "two");
	write_to("two", "!!!!");
	ck_paths_add(&again, 0, "two", CK_FORCED);
	ck_paths_add(&again, 0, "gone", CK_FORCED);
	ck_paths_add(&again, 0, "d", CK_FORCED);
	assert_int_equal(ck_rescan(&s, &again, &now, &e), 0);
	a = ck_find(&now, 0, "two");
	b = ck_find(&now, 0, "d/two");
	assert_non_null(a);
	assert_non_null(b);
	assert_true(a->obj && a->obj == b->obj);
	check_exact(&p, &now, "forced");
	ck_paths_free(&again);
	ck_state_free(&now);
	close(p.layer.objects);
}

/* More than the kernel keeps for us: then anything can have happened. */
static void test_missed(void **state)
{
	struct ck_paths changed = { 0 };
	struct ck_scan s = { .copy = true, .watch = ck_watch_new() };
	struct ck_state now;
	struct place p;
	struct err e;
	FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	unsigned max = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &max), 1);
	fclose(f);
	open_place(&p, state);
	s.layers = &p.layers;
	assert_int_equal(ck_scan(&s, &now, &e), 0);
	for (unsigned i = 0; i <= max / 2; i++) {
		set_mode(up, "a", i & 1 ? 0600 : 0644);
		set_mode(up, "b", i & 1 ? 0600 : 0644);
	}
	assert_false(ck_watch_read(s.watch, &changed));
	ck_watch_free(s.watch);
	ck_paths_free(&changed);
	ck_state_free(&now);
	close(p.layer.objects);
}

int main(void)
{
	struct ck_watch *w = ck_watch_new();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_told, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_forced, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(test_missed, fixture_setup,
						fixture_teardown),
	};

	/* What this says is for kernels that tell: from 6.8 on. */
	if (!w && !kernel_is(6, 8))
		return 77;
	ck_watch_free(w);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
