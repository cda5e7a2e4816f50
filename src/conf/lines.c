/* SPDX-License-Identifier: Apache-2.0 */
#include "conf/lines.h"

#include <stdlib.h>
#include <string.h>

static const struct conf_key *find(const struct conf_lines *l, const char *key)
{
	for (size_t i = 0; i < l->keys_count; i++)
		if (strcmp(l->keys[i].name, key) == 0)
			return &l->keys[i];
	return NULL;
}

uint32_t conf_line(const struct conf_lines *l, const char *key)
{
	const struct conf_key *k = find(l, key);

	return k ? k->line : 1;
}

uint32_t conf_item_line(const struct conf_lines *l, const char *key, size_t i)
{
	const struct conf_key *k = find(l, key);

	return k && i < k->items_count ? k->items[i] : 1;
}

void conf_lines_free(struct conf_lines *l)
{
	for (size_t i = 0; i < l->keys_count; i++)
		free(l->keys[i].items);
	memset(l, 0, sizeof(*l));
}
