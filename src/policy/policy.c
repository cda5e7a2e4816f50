/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/policy.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/parts.h"
#include "rules/doc.h"

#include "builtin.inc"

static const enum conf_origin builtin_origins[ARRAY_SIZE(builtin_docs)];

static const struct policy builtin = {
	.docs = builtin_docs,
	.origins = builtin_origins,
	.docs_count = ARRAY_SIZE(builtin_docs),
	.hash = BUILTIN_HASH,
};

const struct policy *policy_builtin(void)
{
	return &builtin;
}

const char *policy_hash(const struct policy *p)
{
	return p->hash;
}

const struct policy_limits *policy_limits(const struct policy *p)
{
	return &p->limits;
}

enum verdict_kind policy_default(const struct policy *p)
{
	return p->fallback;
}

bool policy_is_off(const struct policy *p, const char *id)
{
	size_t i;
	uint32_t k;

	for (i = 0; i < p->docs_count; i++)
		for (k = 0; k < p->docs[i]->off_count; k++)
			if (fnmatch(p->docs[i]->off[k], id, 0) == 0)
				return true;
	return false;
}

bool policy_env_allows(const struct policy *p, const char *name)
{
	size_t i;
	uint32_t k;

	/* The variable must be in every list: a layer can only take variables away. */
	for (i = 0; i < p->docs_count; i++) {
		const struct doc *d = p->docs[i];

		for (k = 0; k < d->environment_count; k++)
			if (fnmatch(d->environment[k], name, 0) == 0)
				break;
		if (d->environment_count && k == d->environment_count)
			return false;
	}
	return true;
}

bool policy_rule_at(const struct policy *p, size_t i, struct policy_rule *out)
{
	size_t d;

	for (d = 0; d < p->docs_count; d++) {
		const struct doc *doc = p->docs[d];

		memset(out, 0, sizeof(*out));
		out->origin = p->origins[d];
		if (i < doc->rules_count) {
			const struct doc_rule *r = &doc->rules[i];

			out->id = r->id;
			out->group = r->group;
			out->why = r->why;
			out->hint = r->hint;
			out->verdict = r->verdict;
			out->off = policy_is_off(p, r->id);
			return true;
		}
		i -= doc->rules_count;
		if (i < doc->diff_count) {
			const struct doc_diff *r = &doc->diff[i];

			out->id = r->id;
			out->why = r->why;
			out->hint = r->hint;
			out->verdict = r->verdict;
			out->diff = true;
			out->off = policy_is_off(p, r->id);
			return true;
		}
		i -= doc->diff_count;
	}
	return false;
}

char *policy_rule_text(const struct policy *p, const char *id)
{
	size_t d;
	uint32_t i;

	for (d = 0; d < p->docs_count; d++) {
		for (i = 0; i < p->docs[d]->rules_count; i++)
			if (strcmp(p->docs[d]->rules[i].id, id) == 0)
				return doc_rule_text(&p->docs[d]->rules[i]);
		for (i = 0; i < p->docs[d]->diff_count; i++)
			if (strcmp(p->docs[d]->diff[i].id, id) == 0)
				return doc_diff_text(&p->docs[d]->diff[i]);
	}
	return NULL;
}
