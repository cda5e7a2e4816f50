/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_RUN_H
#define STET_PRINT_RUN_H

#include "print/print.h"
#include "session/policy_files.h"

/* Says that the project has a policy that @was ("is", "was") not in force, if it is so. */
void note_project(struct buf *b, enum project_policy p, const char *was);

/* Names res->not_copied, if there is one, with the cause and what to do. */
struct run_res;
void note_not_copied(struct buf *b, struct console *c, const struct run_res *res);

#endif
