/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_VARIABLE_H
#define STET_POLICY_VARIABLE_H

#include "policy/scene.h"
#include "shell/cmd.h"

/*
 * Judges the setting of a variable: programs run the values of some, or take their programs
 * from the directories in them.
 */
void judge_variable(struct scene *s, const char *name, size_t len,
		    const struct word *value);

#endif
