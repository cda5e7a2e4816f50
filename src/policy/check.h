/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_CHECK_H
#define STET_POLICY_CHECK_H

#include "policy/parts.h"

/*
 * Checks whether a document makes sense as layer number @at of @p: ids, paths, limits,
 * options, and what a project may not do. ERR_USAGE with "NAME:LINE: reason".
 */
int check_layer(const struct policy *p, size_t at, const char *name,
		const struct conf_lines *lines, struct err *e);

/* Checks that its tests and hints come out right under the whole policy. */
int check_tests(const struct policy *p, size_t at, const char *name,
		const struct conf_lines *lines, struct err *e);

#endif
