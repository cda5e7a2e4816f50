/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_TRI_H
#define STET_POLICY_TRI_H

/*
 * The answer of a condition. Words of a command may be known only in part (WORD_OPEN), so a
 * condition may hold, not hold, or perhaps hold. Only TRI_YES makes a rule match.
 */
enum tri { TRI_NO, TRI_MAYBE, TRI_YES };

static inline enum tri tri_and(enum tri a, enum tri b)
{
	return a < b ? a : b;
}

static inline enum tri tri_or(enum tri a, enum tri b)
{
	return a > b ? a : b;
}

static inline enum tri tri_not(enum tri a)
{
	return (enum tri)(TRI_YES - a);
}

#endif
