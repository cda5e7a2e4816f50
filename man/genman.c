/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes every manual page into a directory, stet.1 and stet-VERB.1: one program for all of
 * them, so that the build need not know the verbs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/verb.h"
#include "cli/cli.h"
#include "cli/help.h"

static int write_page(const char *dir, const struct verb *v)
{
	AUTO_FREE char *path = NULL, *page = NULL;
	FILE *f;

	page = help_page(v);
	path = xasprintf("%s/%s.1", dir, page);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	help_man(f, v);
	return fclose(f) == 0 ? 0 : -errno;
}

int main(int argc, char **argv)
{
	size_t i;
	int r;

	if (argc != 2) {
		fputs("usage: genman DIRECTORY\n", stderr);
		return 2;
	}
	r = mkdir(argv[1], 0755) < 0 && errno != EEXIST ? -errno : 0;
	if (r == 0)
		r = write_page(argv[1], NULL);
	for (i = 0; r == 0 && verbs[i]; i++)
		r = write_page(argv[1], verbs[i]);
	if (r < 0)
		fprintf(stderr, "genman: %s: %s\n", argv[1], strerror(-r));
	return r < 0;
}
