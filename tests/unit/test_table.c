/* SPDX-License-Identifier: Apache-2.0 */
/* Built with fault points, whatever the rest is built with. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "host/keys.h"
#include "host/known.h"
#include "host/table.h"
#include "plan/plan.h"
#include "sys/fs.h"

static char place[64];
static int dir;

static int make_place(void **state)
{
	(void)state;
	snprintf(place, sizeof(place), "/tmp/table-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static size_t names_in(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_names names;
	size_t n;

	assert_int_equal(fs_names_read(fd, &names), 0);
	n = names.n;
	fs_names_free(&names);
	return n;
}

/* Nothing may be left there. */
static int drop_place(void **state)
{
	(void)state;
	unsetenv("STET_FAULT");
	unsetenv("STET_TABLE_MAX");
	close(dir);
	return rmdir(place);
}

/* Keys as they are in use: hashes, and serials that count up. */
static uint64_t as_hash(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15u;
	i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
	i = (i ^ i >> 27) * 0x94d049bb133111ebu;
	return i ^ i >> 31;
}

static uint64_t as_serial(uint64_t i)
{
	return (as_hash(7) << 24) + i;
}

struct rec {
	uint64_t key;
	char rest[41];
};

static struct rec rec_of(uint64_t key, unsigned turn)
{
	struct rec r = { .key = key };

	memset(r.rest, (int)(key + turn) & 0x7f, sizeof(r.rest));
	return r;
}

static void check(const struct table *t, uint64_t key, unsigned turn)
{
	struct rec want = rec_of(key, turn), got;
	struct err e;

	assert_int_equal(table_get(t, key, &got, &e), 1);
	assert_int_equal(got.key, want.key);
	assert_memory_equal(got.rest, want.rest, sizeof(want.rest));
}

static void put(struct table *t, uint64_t key, unsigned turn)
{
	struct rec r = rec_of(key, turn);
	struct err e;

	assert_int_equal(table_put(t, key, &r, &e), 0);
}

static void test_few_and_many(void **state)
{
	static const struct {
		size_t n;
		const char *most;
		bool nowhere, in_file;
	} cases[] = {
		{ 0, NULL, false, false },
		{ 1, NULL, false, false },
		{ 8192, NULL, false, false },
		{ 8193, NULL, false, true },
		{ 0, "0", false, false },
		{ 1, "0", false, true },
		{ 5, "4", false, true },
		{ 4, "4", false, false },
		{ 9000, NULL, true, false },
		/* So many that some of their hashes are the same. */
		{ 200000, NULL, false, true },
	};
	uint64_t (*const ways[])(uint64_t) = { as_hash, as_serial };

	(void)state;
	for (size_t c = 0; c < 2 * ARRAY_SIZE(cases); c++) {
		uint64_t (*key)(uint64_t) = ways[c % 2];
		size_t n = cases[c / 2].n, open_before = names_in("/proc/self/fd");
		struct table *t;
		struct rec got;
		struct err e;

		if (cases[c / 2].most)
			setenv("STET_TABLE_MAX", cases[c / 2].most, 1);
		t = table_new(cases[c / 2].nowhere ? -1 : dir, sizeof(struct rec));
		unsetenv("STET_TABLE_MAX");
		for (size_t i = 0; i < n; i++)
			put(t, key(i), 0);
		for (size_t i = 0; i < n; i += 3)
			put(t, key(i), 1);
		assert_int_equal(table_count(t), n);
		for (size_t i = 0; i < n; i++)
			check(t, key(i), i % 3 == 0);
		for (size_t i = n; i < n + 1000; i++)
			assert_int_equal(table_get(t, key(i), &got, &e), 0);
		assert_int_equal(names_in("/proc/self/fd") - open_before,
				 cases[c / 2].in_file);
		assert_int_equal(names_in(place), 0);
		table_free(t);
	}
	table_free(NULL);
}

/* Ten records with room for four; then something fails. */
static void test_failures(void **state)
{
	static const struct {
		const char *fault;
		size_t before;
		uint64_t key; /* the number of the one that is put */
		int sys;
	} cases[] = {
		{ "table.open:1+:ENOSPC", 4, 4, ENOSPC },
		{ "nameless.open:1+:EMFILE", 4, 4, EMFILE },
		{ "table.write:1+:ENOSPC", 4, 4, ENOSPC },
		{ "table.write:1+:ENOSPC", 10, 10, ENOSPC },
		{ "table.write:1+:EIO", 10, 3, EIO },
		{ "table.read:1+:EIO", 10, 3, EIO },
	};

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		uint64_t key = as_hash(cases[c].key);
		struct rec r = rec_of(key, 1);
		struct table *t;
		struct err e = { 0 };

		setenv("STET_TABLE_MAX", "4", 1);
		t = table_new(dir, sizeof(struct rec));
		for (size_t i = 0; i < cases[c].before; i++)
			put(t, as_hash(i), 0);
		setenv("STET_FAULT", cases[c].fault, 1);
		assert_int_equal(table_put(t, key, &r, &e), -1);
		assert_int_equal(e.kind, ERR_SYSTEM);
		assert_int_equal(e.sys, cases[c].sys);
		if (strstr(cases[c].fault, "read"))
			assert_int_equal(table_get(t, key, &r, &e), -1);
		unsetenv("STET_FAULT");
		assert_int_equal(table_count(t), cases[c].before);
		for (size_t i = 0; i < cases[c].before; i++)
			if (i != cases[c].key)
				check(t, as_hash(i), 0);
		table_free(t);
	}
}

/* Where a file has to have a name, it has none for long, and others' names do not matter. */
static void test_without_tmpfile(void **state)
{
	char name[40];
	struct table *t;

	(void)state;
	snprintf(name, sizeof(name), ".new-%d-0", (int)getpid());
	close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	setenv("STET_TABLE_MAX", "4", 1);
	setenv("STET_FAULT", "nameless.open:1+:EOPNOTSUPP", 1);
	t = table_new(dir, sizeof(struct rec));
	for (size_t i = 0; i < 100; i++)
		put(t, as_hash(i), 0);
	for (size_t i = 0; i < 100; i++)
		check(t, as_hash(i), 0);
	assert_int_equal(names_in(place), 1);
	table_free(t);
	assert_int_equal(unlinkat(dir, name, 0), 0);
}

static void test_keys(void **state)
{
	/* Each so many times, over and over; @most: room for so many. */
	static const struct {
		size_t n, times, most;
	} cases[] = { { 0, 1, 0 },	   { 1, 1, 16 },    { 16, 1, 16 },
		      { 17, 1, 32 },	   { 12, 100, 32 }, { 1000, 50, 2048 },
		      { 70000, 3, 131072 } };

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		struct keys k = { 0 };

		for (size_t i = 0; i < cases[c].n * cases[c].times; i++)
			keys_add(&k, as_hash(i % cases[c].n));
		keys_sort(&k);
		assert_int_equal(k.n, cases[c].n);
		assert_true(k.cap <= cases[c].most);
		for (size_t i = 1; i < k.n; i++)
			assert_true(k.v[i - 1] < k.v[i]);
		for (size_t i = 0; i < cases[c].n; i++)
			assert_true(keys_has(&k, as_hash(i)));
		for (size_t i = cases[c].n; i < cases[c].n + 1000; i++)
			assert_false(keys_has(&k, as_hash(i)));
		keys_free(&k);
	}
}

static struct ident ident_number(uint64_t i)
{
	return (struct ident){ .ino = i + 1, .mode = 0100644, .size = i };
}

/* In memory and in a file: of what is told twice, the first one counts. */
static void test_first_told_wins(void **state)
{
	static const char *const most[] = { "1000", "7" };
	struct txn_record rec = { .dir = place, .workspace = place };

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(most); c++) {
		struct known *k;
		struct ident id;
		struct err e;
		char rel[16];

		setenv("STET_TABLE_MAX", most[c], 1);
		k = known_new(&rec);
		for (uint64_t i = 0; i < 200; i++) {
			snprintf(rel, sizeof(rel), "f%d", (int)(i % 100));
			id = ident_number(i);
			known_tell(k, i % 2, rel, &id);
		}
		for (uint64_t i = 0; i < 100; i++) {
			snprintf(rel, sizeof(rel), "f%d", (int)i);
			assert_true(known_ident(k, i % 2, rel, &id));
			assert_int_equal(id.ino, i + 1);
			assert_false(known_ident(k, !(i % 2), rel, &id));
		}
		assert_int_equal(known_held(k, &e), 0);
		known_close(k);
	}
}

/* Nothing is said to be unknown because it could not be kept. */
static void test_known_on_a_full_disk(void **state)
{
	static const char *const faults[] = { "table.write:1+:ENOSPC",
					      "table.read:1+:ENOSPC" };
	struct txn_record rec = { .dir = place, .workspace = place };

	(void)state;
	setenv("STET_TABLE_MAX", "1", 1);
	for (size_t c = 0; c < ARRAY_SIZE(faults); c++) {
		struct ident id = ident_number(1);
		struct known *k = known_new(&rec);
		struct err e = { 0 };

		known_tell(k, 0, "a", &id);
		if (c == 0)
			setenv("STET_FAULT", faults[c], 1);
		known_tell(k, 0, "b", &id);
		setenv("STET_FAULT", faults[c], 1);
		assert_false(known_ident(k, 0, "b", &id));
		unsetenv("STET_FAULT");
		assert_int_equal(known_held(k, &e), -1);
		assert_int_equal(e.sys, ENOSPC);
		known_close(k);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_few_and_many),    TEST(test_failures),
		TEST(test_without_tmpfile), TEST(test_keys),
		TEST(test_first_told_wins), TEST(test_known_on_a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
