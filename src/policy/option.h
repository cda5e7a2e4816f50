/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_OPTION_H
#define STET_POLICY_OPTION_H

#include "policy/line.h"

/* Does @pattern, in which case does not count, match the word? */
enum tri match_text(const char *pattern, const struct word *w);

/*
 * Does the line have the option? @spec lists alternatives, such as "-r|--recursive" or
 * "-X=DELETE|--request=DELETE". If @found is not NULL, it gets the first option that matches.
 */
enum tri match_option(const struct line *l, const char *spec, const struct opt **found);

/* Is @o one of the options that @spec names, whatever its value? */
bool is_option(const char *spec, const struct line *l, const struct opt *o);

/*
 * Does the line surely have the option, so that an exception for it holds? Not if the option
 * is taken back (--no-dry-run, --dry-run=none, npm's --dry-run false), is given twice with
 * different values, or may itself be the value of another option.
 */
enum tri match_exception(const struct line *l, const char *spec);

#endif
