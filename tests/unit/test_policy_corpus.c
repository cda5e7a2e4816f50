/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of the corpus in tests/policy gets the verdict that its header says. */
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
#include "policy/policy.h"

#define NEWLINE "\xe2\x90\xa4" /* U+2424 */

struct tally {
	size_t cases, wrong, files;
};

static char *corpus_dir(void)
{
	const char *source = getenv("STET_SOURCE");

	return xasprintf("%s/tests/policy", source ? source : STET_SOURCE_DIR);
}

/* The text of a case, with its line feeds; to be freed. */
static char *text_of(const char *line)
{
	struct buf b = BUF_INIT;

	for (; *line; line++) {
		if (strncmp(line, NEWLINE, strlen(NEWLINE)) == 0) {
			buf_addc(&b, '\n');
			line += strlen(NEWLINE) - 1;
		} else {
			buf_addc(&b, *line);
		}
	}
	return buf_take(&b);
}

static void judge_case(struct tally *t, const char *where, int line, const char *want,
		       const char *row)
{
	AUTO_FREE char *text = text_of(row);
	struct verdict v;
	struct err e;

	t->cases++;
	assert_int_equal(policy_judge_text(policy_builtin(), text, strlen(text),
					   &policy_test_facts, &v, &e),
			 0);
	if (strcmp(verdict_name(v.kind), want) != 0) {
		t->wrong++;
		print_error("%s:%d: %s by %s, not %s: %s\n", where, line,
			    verdict_name(v.kind), v.rule ? v.rule : "nothing", want, row);
	}
}

static void read_cases(struct tally *t, const char *dir, const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name), *line = NULL;
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	char want[16] = "";
	size_t cap = 0;
	int n = 0;

	assert_non_null(f);
	t->files++;
	while (getline(&line, &cap, f) > 0) {
		n++;
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '\t')
			judge_case(t, name, n, want, line + 1);
		else if (line[0] == '=')
			assert_int_equal(sscanf(line, "= %*s %*s %15s", want), 1);
		else
			assert_true(line[0] == 0 || line[0] == '#');
	}
}

static void test_cases(void **state)
{
	AUTO_FREE char *dir = corpus_dir();
	AUTO_CLOSEDIR DIR *d = opendir(dir);
	struct tally t = { 0, 0, 0 };
	struct dirent *de;

	(void)state;
	assert_non_null(d);
	while ((de = readdir(d)) != NULL) {
		const char *dot = strrchr(de->d_name, '.');

		if (dot && strcmp(dot, ".tests") == 0)
			read_cases(&t, dir, de->d_name);
	}
	assert_true(t.files >= 3);
	assert_true(t.cases >= 1500);
	assert_int_equal(t.wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
