/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_CHECK_H
#define STET_POLICY_CHECK_H

#include "policy/doc.h"

/*
 * Does what a document says make sense in its layer, number @at of @p? Ids, paths, limits,
 * options, and what a project may not do. ERR_USAGE with "NAME:LINE: reason".
 */
int check_layer(const struct policy *p, size_t at, const char *name,
		const struct doc_lines *lines, struct err *e);

/* Do its tests and hints come out as they should, under the whole policy? */
int check_tests(const struct policy *p, size_t at, const char *name,
		const struct doc_lines *lines, struct err *e);

#endif
