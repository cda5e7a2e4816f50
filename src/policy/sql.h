/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_SQL_H
#define STET_POLICY_SQL_H

#include <stdbool.h>

#include "base/arena.h"

/*
 * Is one of the statements in @text like @pattern? A statement is compared in lower case,
 * without comments, with single spaces, and with each string and quoted name as '': what
 * is only data does not count. Without @whole the last one may go on, and is left out.
 */
bool sql_matches(struct arena *a, const char *text, const char *pattern, bool whole);

#endif
