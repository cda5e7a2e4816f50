/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_COMMAND_H
#define STET_POLICY_COMMAND_H

#include "policy/scene.h"
#include "shell/cmd.h"

/* Judges a command and everything that it would run. */
void judge_command(struct scene *s, struct cmd *c);

#endif
