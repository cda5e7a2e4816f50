/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_POLICY_ROWS_H
#define TESTS_POLICY_ROWS_H

#include <stddef.h>

/* A row of tests/policy, in the form that files.tests explains. */
struct policy_row {
	const char *file;
	int line;
	const char *label,
		*want;	  /* the first and the third word of the header above the row */
	const char *text; /* U+2424 stands for a line feed in the file, and is one here */
	const char *raw;
};

/* Calls @fn for each row of every *.tests file. Returns how many files there are. */
size_t policy_rows(void (*fn)(void *arg, const struct policy_row *r), void *arg);

#endif
