/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "diff/gitindex.h"

/* git's index, made by hand: what counts of it, and that nothing is read beyond its end. What git
 * itself makes of one is in tests/live/test_git.py. */

struct shape {
	const char *what;
	uint32_t version;
	size_t hash;
	char stat;	  /* what stat(2) is said to have told */
	char id;	  /* which content */
	bool extended;	  /* one more word of flags */
	const char *name; /* of the second file */
	const char *ext;  /* an extension, or NULL */
	char sum;	  /* the checksum, which nobody verifies */
};

static void add_number(struct buf *b, uint32_t n)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_addc(b, (char)(n >> shift));
}

static void add_many(struct buf *b, char c, size_t n)
{
	while (n--)
		buf_addc(b, c);
}

static void add_entry(struct buf *b, const struct shape *s, const char *name)
{
	size_t start = b->len;

	add_many(b, s->stat, 24);
	add_number(b, 0100644);
	add_many(b, s->stat, 12);
	add_many(b, s->id, s->hash);
	buf_addc(b, s->extended ? 0x40 : 0);
	buf_addc(b, (char)strlen(name));
	if (s->extended)
		add_many(b, 0x20, 2);
	if (s->version == 4)
		buf_add(b, "\x80\x00", 2);
	buf_add(b, name, strlen(name) + 1);
	while (s->version < 4 && (b->len - start) % 8)
		buf_addc(b, '\0');
}

static void make(const struct shape *s, struct buf *b)
{
	buf_reset(b);
	buf_adds(b, "DIRC");
	add_number(b, s->version);
	add_number(b, 2);
	add_entry(b, s, "a");
	add_entry(b, s, s->name);
	if (s->ext) {
		buf_adds(b, s->ext);
		add_number(b, 3);
		buf_add(b, &s->stat, 1);
		buf_add(b, "xy", 2);
	}
	add_many(b, s->sum, s->hash);
}

static void collect(void *arg, const void *part, size_t len)
{
	buf_add(arg, part, len);
}

static bool same(const struct shape *one, const struct shape *other)
{
	AUTO_BUF struct buf a = BUF_INIT, b = BUF_INIT, x = BUF_INIT, y = BUF_INIT;

	make(one, &a);
	make(other, &b);
	assert_true(gitindex_parts(buf_str(&a), a.len, collect, &x));
	assert_true(gitindex_parts(buf_str(&b), b.len, collect, &y));
	return x.len == y.len && memcmp(buf_str(&x), buf_str(&y), x.len) == 0;
}

static const struct shape shapes[] = {
	{ "version 2", 2, 20, 's', 'i', false, "file", NULL, '#' },
	{ "version 3", 3, 20, 's', 'i', true, "file", NULL, '#' },
	{ "version 4", 4, 20, 's', 'i', false, "file", NULL, '#' },
	{ "long hash", 2, 32, 's', 'i', false, "file", NULL, '#' },
	{ "derived", 2, 20, 's', 'i', false, "file", "TREE", '#' },
	{ "split", 2, 20, 's', 'i', false, "file", "link", '#' },
};
enum { NSHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static void test_what_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < NSHAPES; i++) {
		const struct shape *s = &shapes[i];
		struct shape looked = *s, changed = *s, named = *s;
		bool split = s->ext && strcmp(s->ext, "link") == 0;

		looked.stat = 't';
		looked.sum = '%';
		changed.id = 'j';
		named.name = "fill";
		/* Where the rest of it lies is said in the extension. */
		if (same(s, &looked) == split || same(s, &changed) || same(s, &named))
			fail_msg("%s", s->what);
	}
}

static void test_cut_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < NSHAPES; i++) {
		AUTO_BUF struct buf b = BUF_INIT, x = BUF_INIT;

		make(&shapes[i], &b);
		for (size_t n = 0; n < b.len; n++) {
			/* Of its own, so that a sanitizer sees who reads on. */
			char *part = xmalloc(n + 1);

			memcpy(part, buf_str(&b), n);
			part = xrealloc(part, n ? n : 1);
			gitindex_parts(part, n, collect, &x);
			free(part);
		}
		/* Every byte another one: whatever it says, it ends. */
		for (size_t n = 0; n < b.len; n++) {
			b.data[n] = (char)~b.data[n];
			gitindex_parts(buf_str(&b), b.len, collect, &x);
			b.data[n] = (char)~b.data[n];
			buf_reset(&x);
		}
	}
}

static void test_no_index(void **state)
{
	static const char *const texts[] = {
		"", "DIRC", "DIRC\0\0\0\5\0\0\0\0",
		"PK\3\4 some archive or other, long enough"
	};
	AUTO_BUF struct buf x = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(gitindex_parts(texts[i], strlen(texts[i]), collect, &x));
	assert_int_equal(x.len, 0);
	assert_true(gitindex_name(".git/index") && gitindex_name("index"));
	assert_false(gitindex_name("index.c") || gitindex_name("index/x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_counts),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_no_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
