/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_NAME_H
#define STET_POLICY_NAME_H

#include <stdbool.h>

#include "shell/cmd.h"

/* Does the name match @pattern, which is a name or a glob? */
bool name_matches(const char *pattern, const char *name);

/* The last component of a path. */
const char *name_base(const char *path);

/* Adds a name to those of the command, unless the command has that name already. */
void name_add(struct cmd *c, const char *name);

#endif
