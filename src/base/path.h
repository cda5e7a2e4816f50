/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_PATH_H
#define STET_BASE_PATH_H

#include <stdbool.h>

/* Is @path equal to @dir or beneath it? Both are clean, and both absolute or both relative. */
bool path_within(const char *path, const char *dir);

/* Is it beneath, and not equal? */
bool path_below(const char *path, const char *dir);

#endif
