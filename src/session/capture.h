/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_CAPTURE_H
#define STET_SESSION_CAPTURE_H

#include <stdint.h>

#include "base/err.h"
#include "call/schema.h"
#include "txn/txn.h"

/*
 * Output of a command that becomes part of a result: the beginning of each stream, and all of
 * it in a file if there is more. Such files lie in `output` in the state directory and go
 * after a week.
 */
struct captured {
	char *text; /* NULL: nothing was captured */
	size_t len;
	uint64_t bytes; /* of all */
	char *file;	/* or NULL */
};

struct capture {
	struct captured stream[2]; /* standard output, standard error */
	int fd[2];		   /* for the command to write to */
};

/* Opens files without a name. Nothing is left on failure. */
int capture_open(const struct home *h, struct capture *c, struct err *e);

/*
 * The command has ended: reads up to @keep bytes of each, and gives those of which there is
 * more a name that begins with @name. Closes both.
 */
int capture_end(const struct home *h, struct capture *c, uint64_t keep, const char *name,
		struct err *e);

void capture_free(struct capture *c); /* zeroed is fine */

/* Rows of a result, about a struct capture. */
extern const struct field capture_fields[];

#endif
