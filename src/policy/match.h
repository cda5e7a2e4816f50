/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_MATCH_H
#define STET_POLICY_MATCH_H

#include "policy/line.h"

/* Applies the rules to one command line. True if a rule surely matched. */
bool match_rules(struct scene *s, const struct cmd *c, const struct line *l);

/* Applies the rules about redirections to one that writes to @target. */
void judge_write(struct scene *s, const struct word *target);

#endif
