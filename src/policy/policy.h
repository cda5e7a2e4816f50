/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_POLICY_H
#define STET_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/origin.h"
#include "rules/facts.h"
#include "rules/verdict.h"

/*
 * A policy is made of YAML texts, is immutable once loaded, and gives verdicts about commands,
 * shell texts and changes. All that is judged comes in as facts, so the same question always
 * has the same answer. Of all rules that match, the strictest wins, in whatever order and
 * layer they stand.
 *
 * policy_builtin() is the policy without files. Otherwise policy_load() (load.h) makes one
 * from them, policy_judge_exec(), policy_judge_text() and policy_judge_change() (judge.h) give
 * verdicts, and policy_free() ends it.
 */
struct policy;

/* The built-in policy alone. It is static: it costs nothing and is never freed. */
const struct policy *policy_builtin(void);

/* SHA-256 of everything that has an effect on verdicts, as 64 hexadecimal digits. */
const char *policy_hash(const struct policy *p);

/* The limits of a run. 0 means no limit of that kind. */
struct policy_limits {
	int64_t wall_ms, cpu_ms;
	uint64_t memory, disk, file, output; /* bytes */
	int64_t pids, files;
};

/* The strictest limits of all layers. They belong to the policy. */
const struct policy_limits *policy_limits(const struct policy *p);

/* The strictest default of all layers. */
enum verdict_kind policy_default(const struct policy *p);

/* May a variable of the environment be seen inside? Without a list every variable may. */
bool policy_env_allows(const struct policy *p, const char *name);

/* The description of one rule. The strings belong to the policy. */
struct policy_rule {
	const char *id, *group, *why, *hint;
	enum verdict_kind verdict;
	enum conf_origin origin;
	bool diff; /* judges changes, not commands */
	bool off;  /* switched off by another layer */
};

/* Describes rule number @i, from 0 on. False: there are no more rules. */
bool policy_rule_at(const struct policy *p, size_t i, struct policy_rule *out);

/* Is the rule of that id switched off by a layer? */
bool policy_is_off(const struct policy *p, const char *id);

/* The rule as YAML, to be freed; NULL if no rule has that id. */
char *policy_rule_text(const struct policy *p, const char *id);

#endif
