/* SPDX-License-Identifier: Apache-2.0 */
#include "change_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "layer/ident.h"
#include "layer/unshare.h"

/* Parting a layer from the host, also where another one has begun with it and was killed. */

static struct ident look(int dir, const char *name)
{
	struct ident id;

	assert_int_equal(ident_at(dir, name, &id), 0);
	return id;
}

/* "a", "d/b" and "c" in the upper are one file with "x" of the host's; gives `old`. */
static int make_shared(struct fixture *f)
{
	AUTO_FREE char *old = xasprintf("%s/old", f->dir);
	int fd;

	make_file(f->h, "x", "text");
	make_dir(f->u, "d");
	assert_int_equal(linkat(f->h, "x", f->u, "a", 0), 0);
	assert_int_equal(linkat(f->h, "x", f->u, "d/b", 0), 0);
	assert_int_equal(linkat(f->h, "x", f->u, "c", 0), 0);
	assert_int_equal(mkdir(old, 0700), 0);
	fd = open(old, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* As own.c names what waits; a version @size bytes long. */
static char *waiting(const struct ident *id, uint64_t size)
{
	return xasprintf("own/%llx-%llx-%llx-%llx", (unsigned long long)id->ino,
			 (unsigned long long)id->btime, (unsigned long long)id->mtime,
			 (unsigned long long)size);
}

static void check_text(int dir, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char got[16] = "";

	assert_true(fd >= 0 && read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, text);
}

static void check_parted(struct fixture *f, int old, size_t names)
{
	static const char *const all[] = { "a", "c", "d/b" };

	assert_int_equal(look(f->h, "x").nlink, 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(look(f->u, all[i]).nlink, names);
		assert_int_not_equal(look(f->u, all[i]).ino, look(f->h, "x").ino);
		check_text(f->u, all[i], "text");
	}
	assert_int_equal(look(old, "own").mode, 0);
}

static void test_parted(void **state)
{
	struct fixture *f = *state;
	AUTO_CLOSE int old = make_shared(f);

	assert_int_equal(unshare_layer(&f->layer), 0);
	check_parted(f, old, 3);
	/* Nothing to do any more. */
	assert_int_equal(unshare_layer(&f->layer), 0);
	check_parted(f, old, 3);
}

/* Killed after some of the names: they are one file in the end all the same. */
static void killed_after(struct fixture *f, size_t done)
{
	static const char *const names[] = { "a", "c", "d/b" };
	AUTO_CLOSE int old = make_shared(f);
	struct ident id = look(f->h, "x");
	AUTO_FREE char *copy = waiting(&id, id.size);

	make_dir(old, "own");
	make_file(old, copy, "text");
	for (size_t i = 0; i < done; i++) {
		assert_int_equal(unlinkat(f->u, names[i], 0), 0);
		assert_int_equal(linkat(old, copy, f->u, names[i], 0), 0);
	}
	make_file(old, "own/new", "half");
	assert_int_equal(unshare_layer(&f->layer), 0);
	check_parted(f, old, 3);
}

static void test_killed_at_first(void **state)
{
	killed_after(*state, 0);
}

static void test_killed_between(void **state)
{
	killed_after(*state, 2);
}

static void test_killed_at_last(void **state)
{
	killed_after(*state, 3);
}

/* What waits is of another version, or of nobody: it is not put in place of anything. */
static void test_another_version(void **state)
{
	struct fixture *f = *state;
	AUTO_CLOSE int old = make_shared(f);
	struct ident id = look(f->h, "x");
	AUTO_FREE char *longer = waiting(&id, id.size + 1);

	make_dir(old, "own");
	make_file(old, longer, "other");
	make_file(old, "own/1-2-3-4", "nobody's");
	assert_int_equal(unshare_layer(&f->layer), 0);
	check_parted(f, old, 3);
}

/* Links within the layer alone are nobody else's. */
static void test_left_alone(void **state)
{
	struct fixture *f = *state;
	AUTO_CLOSE int old = make_shared(f);
	uint64_t ino = look(f->u, "a").ino;

	assert_int_equal(unlinkat(f->h, "x", 0), 0);
	assert_int_equal(unshare_layer(&f->layer), 0);
	assert_int_equal(look(f->u, "a").ino, ino);
	assert_int_equal(look(f->u, "d/b").ino, ino);
	assert_int_equal(look(old, "own").mode, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_parted),		T(test_killed_at_first), T(test_killed_between),
		T(test_killed_at_last), T(test_another_version), T(test_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
