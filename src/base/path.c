/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include <string.h>

bool path_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool path_below(const char *path, const char *dir)
{
	return path_within(path, dir) && strcmp(path, dir) != 0;
}
