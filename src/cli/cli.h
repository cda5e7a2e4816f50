/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_CLI_H
#define STET_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/report.h"
#include "session/policy_files.h"
#include "session/verb.h"

/* One command line, from its words to its exit status. */
int cli_main(int argc, char **argv, char *const *env);

/*
 * What the printers share. They print to `out`, which is standard output or a pager (or,
 * for a verb that runs commands, standard error).
 */
struct cli {
	struct op_ctx ctx;
	FILE *out;
	bool tty; /* a person reads it */
	bool color;
	int status;	      /* set by a printer that changed the outcome; else -1 */
	struct report report; /* results as JSON */
};

/*
 * Runs a verb with a request and reports its result, as text or JSON. Returns the exit
 * status; errors are reported as well.
 */
int cli_verb(struct cli *c, const struct verb *v, const void *req);

/*
 * Printers of results as text, one per verb. Return 0, or -1 with *e set if something
 * failed on the way (a diff is made as it is printed). May change @res.
 */
typedef int cli_print(struct cli *c, const void *req, const void *res, struct err *e);
cli_print print_run, print_exec, print_explore, print_status, print_list, print_diff,
	print_commit, print_rollback, print_undo, print_redo, print_log, print_audit,
	print_forget, print_prune, print_check, print_recover, print_doctor,
	print_version, print_help, print_completion, print_checkpoint, print_show,
	print_restore, print_fork, print_policy_check, print_policy_show,
	print_policy_test, print_policy_explain, print_allow, print_consent;

/* The checkpoints of a transaction, for stet log. */
struct log_res;

/*
 * Explains the failure @e, reported already but for its hint, to a person. Returns the
 * exit status of what the person made of it, or -1: it is a failure still.
 */
typedef int cli_explain(struct cli *c, const void *req, const void *res,
			const struct err *e);
cli_explain explain_commit, explain_rollback, explain_undo, explain_redo;

struct commit_req;
struct commit_result;
struct txn_record;

/* Asks at the terminal whether a command may run; @arg: struct cli. */
enum consent cli_consent(void *arg, const struct consent_question *q);

/* "stet: MESSAGE; HINT" on standard error, safe for a terminal. */
void cli_complain(const struct err *e, bool hint);

#endif
