/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/tool.h"

#include "policy/name.h"
#include "policy/parts.h"
#include "rules/doc.h"

static bool tool_named(const struct doc_tool *t, const char *name)
{
	uint32_t i;

	for (i = 0; i < t->names_count; i++)
		if (name_matches(t->names[i], name))
			return true;
	return false;
}

const struct doc_tool *tool_find(const struct policy *p, const char *name)
{
	const uint64_t letters = doc_letters(name);
	size_t i;
	uint32_t t;

	for (i = p->docs_count; i--;)
		for (t = 0; t < p->docs[i]->tools_count; t++) {
			const struct doc_tool *tool = &p->docs[i]->tools[t];

			if (tool->letters && !(tool->letters & letters))
				continue;
			if (tool_named(tool, name))
				return tool;
		}
	return NULL;
}

unsigned policy_runs(const struct policy *p, const char *name)
{
	const struct doc_tool *t = tool_find(p, name);
	const struct doc_inner *in = t ? t->inner : NULL;

	if (!in)
		return 0;
	return (in->command ? RUNS_COMMAND : 0U) | (in->script ? RUNS_SCRIPT : 0U) |
	       (in->stdin_text ? RUNS_TEXT : 0U);
}
