/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_DIALOG_H
#define STET_CLI_DIALOG_H

#include "cli/cli.h"

/* Questions to the person at the terminal. An answer may run another verb. */

/*
 * After the text of a result: what is to become of the transaction. Returns the exit status that
 * the answer leads to, or -1: the verb's own holds.
 */
int dialog_done(struct cli *c, const struct verb *v, const void *req, const void *res);

/*
 * Explains the failure @e of a verb whose result tells more (verb.explain), and asks whether it
 * shall be done all the same where a person may decide that. Returns the exit status of what was
 * done then, or -1: the failure stands.
 */
int dialog_refused(struct cli *c, const struct verb *v, const void *req, const void *res,
		   const struct err *e);

/* Asks whether a command may run; @arg: struct cli. For op_ctx.consent. */
enum consent dialog_consent(void *arg, const struct consent_question *q);

#endif
