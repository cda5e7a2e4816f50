/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_CLI_H
#define STET_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "call/verb.h"
#include "cli/report.h"
#include "print/print.h"

/* One command line, from its words to its exit status. */
int cli_main(int argc, char **argv, char *const *env);

/* The state of a command line. */
struct cli {
	struct op_ctx ctx;
	struct console con;   /* where text goes; its context is the one above */
	struct report report; /* results as JSON */
};

void cli_open(struct cli *c, char *const *env);
void cli_close(struct cli *c);

/*
 * Runs a verb with a request and reports its result, as text or JSON. Returns the exit
 * status; errors are reported as well.
 */
int cli_verb(struct cli *c, const struct verb *v, const void *req);

/* Parses a line of verb @v and does it. The exit status. */
int cli_line(struct cli *c, const struct verb *v, int argc, char **argv);

/* Says what went wrong, as text or JSON; @v may be NULL. The exit status. */
int cli_report(struct cli *c, const struct verb *v, bool json, const struct err *e);

/*
 * Opens the destination of the results of a line, as @common says. cli_end_report() is due in
 * any case, and returns the exit status: @status, unless the result could not be written.
 */
int cli_open_report(struct cli *c, const struct verb *v, const struct verb_common *common,
		    struct err *e);
int cli_end_report(struct cli *c, const struct verb *v, int status);

#endif
