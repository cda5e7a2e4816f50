/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_rows.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define NEWLINE "\xe2\x90\xa4" /* U+2424 */

static char *with_line_feeds(const char *raw)
{
	struct buf b = BUF_INIT;

	for (; *raw; raw++) {
		if (strncmp(raw, NEWLINE, strlen(NEWLINE)) == 0) {
			buf_addc(&b, '\n');
			raw += strlen(NEWLINE) - 1;
		} else {
			buf_addc(&b, *raw);
		}
	}
	return buf_take(&b);
}

static void read_file(const char *dir, const char *name,
		      void (*fn)(void *arg, const struct policy_row *r), void *arg)
{
	AUTO_FREE char *path = xasprintf("%s/%s", dir, name), *line = NULL;
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	char label[16] = "", want[16] = "";
	size_t cap = 0;

	assert_non_null(f);
	for (int n = 1; getline(&line, &cap, f) > 0; n++) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '\t') {
			AUTO_FREE char *text = with_line_feeds(line + 1);

			fn(arg,
			   &(struct policy_row){ name, n, label, want, text, line + 1 });
		} else if (line[0] == '=') {
			assert_int_equal(sscanf(line, "= %15s %*s %15s", label, want), 2);
		} else {
			assert_true(line[0] == 0 || line[0] == '#');
		}
	}
}

size_t policy_rows(void (*fn)(void *arg, const struct policy_row *r), void *arg)
{
	const char *source = getenv("STET_SOURCE");
	AUTO_FREE char *dir = xasprintf("%s/tests/policy",
					source ? source : STET_SOURCE_DIR);
	AUTO_CLOSEDIR DIR *d = opendir(dir);
	struct dirent *de;
	size_t files = 0;

	assert_non_null(d);
	while ((de = readdir(d)) != NULL) {
		const char *dot = strrchr(de->d_name, '.');

		if (!dot || strcmp(dot, ".tests") != 0)
			continue;
		read_file(dir, de->d_name, fn, arg);
		files++;
	}
	return files;
}
