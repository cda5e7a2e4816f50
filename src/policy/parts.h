/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_PARTS_H
#define STET_POLICY_PARTS_H

#include "policy/policy.h"
#include "rules/doc.h"

/* A policy: the built-in documents and those of further layers, from the bottom up. */
struct policy {
	const struct doc *const *docs;
	const enum conf_origin *origins; /* of each document */
	size_t docs_count;
	struct policy_limits limits;
	enum verdict_kind fallback; /* for a command that no rule matches */
	char hash[65];
	struct doc **owned; /* the documents that are not built in */
	size_t owned_count;
};

#endif
