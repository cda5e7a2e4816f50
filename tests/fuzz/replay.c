/* SPDX-License-Identifier: Apache-2.0 */
/* Every file of a target's corpus once: what was found stays found. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "fuzz.h"

static void replay(const char *path)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	struct buf b = BUF_INIT;
	uint8_t *exact;
	char chunk[4096];
	size_t n;

	assert_non_null(f);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_add(&b, chunk, n);
	/* Of exactly that size, so that a sanitizer sees a byte too many. */
	exact = malloc(b.len ? b.len : 1);
	assert_non_null(exact);
	if (b.len)
		memcpy(exact, b.data, b.len);
	assert_int_equal(LLVMFuzzerTestOneInput(exact, b.len), 0);
	free(exact);
	buf_free(&b);
}

static void test_corpus(void **state)
{
	const char *source = getenv("STET_SOURCE");
	AUTO_FREE char *dir = xasprintf("%s/tests/fuzz/corpus/" STET_FUZZ_TARGET,
					source ? source : STET_SOURCE_DIR);
	AUTO_CLOSEDIR DIR *d = opendir(dir);
	struct dirent *de;
	size_t files = 0;

	(void)state;
	assert_non_null(d);
	while ((de = readdir(d)) != NULL) {
		AUTO_FREE char *path = xasprintf("%s/%s", dir, de->d_name);

		if (de->d_name[0] == '.')
			continue;
		replay(path);
		files++;
	}
	assert_true(files > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_corpus) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
