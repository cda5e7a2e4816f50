/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/quote.h"

#include <string.h>

const char *shell_quoted(struct arena *a, const char *w)
{
	char *out = arena_take(a, 4 * strlen(w) + 3), *p = out;

	*p++ = '\'';
	for (; *w; w++) {
		if (*w == '\'') {
			memcpy(p, "'\\''", 4);
			p += 4;
		} else {
			*p++ = *w;
		}
	}
	*p = '\'';
	return out;
}
