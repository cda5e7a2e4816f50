/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/doc.h"

#include <string.h>

#include "rules/schema.h"

static uint64_t letters_of(const char *const *patterns, uint32_t n)
{
	uint64_t letters = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t known = strcspn(patterns[i], "*?[\\");

		if (!known || (known == 1 && patterns[i][1]))
			return 0;
		letters |= doc_letters(patterns[i]);
	}
	return letters;
}

static void find_letters(struct doc *d)
{
	for (uint32_t i = 0; i < d->rules_count; i++)
		d->rules[i].letters = letters_of(d->rules[i].match.program,
						 d->rules[i].match.program_count);
	for (uint32_t i = 0; i < d->tools_count; i++)
		d->tools[i].letters = letters_of(d->tools[i].names,
						 d->tools[i].names_count);
}

int doc_parse(const struct conf_source *source, struct doc **out,
	      struct conf_lines *lines, struct err *e)
{
	*out = conf_load(&doc_schema, source, lines, e);
	if (!*out)
		return -1;
	find_letters(*out);
	return 0;
}

void doc_free(struct doc *d)
{
	conf_free(&doc_schema, d);
}

char *doc_rule_text(const struct doc_rule *r)
{
	return conf_text(&doc_rule_schema, r);
}

char *doc_diff_text(const struct doc_diff *r)
{
	return conf_text(&doc_diff_schema, r);
}
