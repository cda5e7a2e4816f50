/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_PRINT_H
#define STET_PRINT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "call/ctx.h"

/*
 * Results of verbs as text for people. A printer has everything that it prints from the result: it
 * asks no transaction anything, takes no lock, and starts no other verb. The one exception are
 * texts that are too large to be part of a result; the verb makes those one by one while they are
 * printed (diff_text(), audit_next()).
 */

/* Where the text goes. */
struct console {
	struct op_ctx *ctx; /* the caller's directory and environment */
	FILE *out;	    /* standard output, a pager, or standard error */
	bool tty;	    /* @out is a terminal */
	bool color;
};

/* Prints the result of one verb. Returns 0, or -1 with *e set if its text could not be made. */
typedef int print_fn(struct console *c, const void *req, const void *res, struct err *e);

/* print_run, print_exec, …: a printer for each verb. */
#define VERB(name) extern print_fn print_##name;
#include "verbs/verbs.def"
#undef VERB

#endif
