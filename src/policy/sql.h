/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_SQL_H
#define STET_POLICY_SQL_H

#include <stdbool.h>

#include "base/arena.h"

/*
 * Does one of the statements in @text match @pattern? A statement is compared in lower
 * case, without comments, with single spaces, and with '' for each string and quoted
 * name, because data does not count. Unless @whole, the last statement may be incomplete
 * and is left out.
 */
bool sql_matches(struct arena *a, const char *text, const char *pattern, bool whole);

#endif
