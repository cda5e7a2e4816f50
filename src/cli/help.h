/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_HELP_H
#define STET_CLI_HELP_H

#include "call/verb.h"
#include "print/print.h"

/* Usage of one verb, or the overview if @v is NULL. */
void help_text(FILE *out, const struct verb *v);

/* Name of its manual page, "stet-policy-check"; to be freed. */
char *help_page(const struct verb *v);

/* The same as a manual page, in roff. */
void help_man(FILE *out, const struct verb *v);

#endif
