/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_PRINT_RUN_H
#define STET_CLI_PRINT_RUN_H

#include "cli/cli.h"

/* Says that the project has a policy that @was ("is", "was") not in force, if it is so. */
void note_project(struct buf *b, enum project_policy p, const char *was);

#endif
