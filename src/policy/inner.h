/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_INNER_H
#define STET_POLICY_INNER_H

#include "policy/line.h"

/* Judges the programs and texts that this command would run. */
void judge_inner(struct scene *s, const struct cmd *c, const struct line *l);

/* Programs whose output this one takes for its own program; NULL if there are none. */
const struct names *program_source(const struct cmd *c, const struct line *l);

#endif
