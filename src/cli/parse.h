/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_PARSE_H
#define STET_CLI_PARSE_H

#include "call/verb.h"

/*
 * Fills in @req (zeroed, v->request_size) from argv[1..argc), argv[0] being the verb.
 * Strings point into argv; lists are to be released with parse_free(), also after a
 * failure. ERR_USAGE names the verb and what is wrong.
 *
 * Options and operands may be mixed, up to "--". Where the first operand is a command,
 * everything from it on is the command's.
 *
 * With --help among the options nothing else is required.
 */
int parse_verb(const struct verb *v, int argc, char **argv, void *req, struct err *e);
void parse_free(const struct verb *v, void *req);

/*
 * What a line says of JSON: json, json_fd and json_file of @common are set. A line that cannot be
 * parsed is looked through for these options alone.
 */
void parse_report(const struct verb *v, int argc, char **argv,
		  struct verb_common *common);

#endif
