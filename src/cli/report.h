/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_REPORT_H
#define STET_CLI_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "call/verb.h"

/*
 * Where a result goes as JSON: standard output or error, a descriptor of the caller's
 * (--json-fd), or a file (--json-file) that has the whole result or stays as it was. Zeroed is
 * fine for a result that nobody wants as JSON.
 */
struct report {
	FILE *out;  /* NULL: not opened yet */
	int fd;	    /* --json-fd; 0: none */
	int dir;    /* of the file, owned; -1: none */
	char *name; /* of the file in it */
	char *path; /* as it was given, for messages */
	char *temp; /* its name until it is whole; NULL: it needs none yet */
	bool used;  /* there is something in it */
};

/*
 * Looks at what @common says, before anything is done: a descriptor that is not open for
 * writing, or a file that cannot be made, is an error now. The descriptor is closed on exec
 * from now on. @outside: the words come from the inside of a transaction; where the result goes
 * is for whoever asked, and here it is standard output.
 */
int report_open(struct report *r, const struct verb_common *common, bool outside,
		struct err *e);

/* Where to write; on the first call the file is made. @plain: where there is nothing else. */
int report_begin(struct report *r, FILE *plain, struct err *e);

/* All is written: the file takes its name. Nothing is left open. */
int report_end(struct report *r, struct err *e);

/* The descriptor that the report goes to; 0: none. @plain: what report_begin() will get. */
int report_fd(const struct report *r, FILE *plain);

#endif
