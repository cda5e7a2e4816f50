/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/name.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"

bool name_matches(const char *pattern, const char *name)
{
	size_t i = 0;

	/* Nearly all names differ in their first letters. */
	while (pattern[i] && pattern[i] == name[i])
		i++;
	if (pattern[i] == '*' || pattern[i] == '?' || pattern[i] == '[')
		return fnmatch(pattern, name, 0) == 0;
	return !pattern[i] && !name[i];
}

const char *name_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void name_add(struct cmd *c, const char *name)
{
	size_t i;

	if (!name || !*name)
		return;
	for (i = 0; i < ARRAY_SIZE(c->names); i++) {
		if (!c->names[i]) {
			c->names[i] = name;
			return;
		}
		if (strcmp(c->names[i], name) == 0)
			return;
	}
}
