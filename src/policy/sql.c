/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/sql.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

/* The position behind a comment that begins at @p; NULL if none begins there. */
static const char *behind_comment(const char *p)
{
	const char *end;

	if (strncmp(p, "--", 2) == 0)
		return p + strcspn(p, "\n");
	if (strncmp(p, "/*", 2) != 0)
		return NULL;
	end = strstr(p + 2, "*/");
	return end ? end + 2 : p + strlen(p);
}

static const char *behind_quoted(const char *p)
{
	char quote = *p++;

	while (*p && *p != quote)
		p += *p == '\\' && p[1] ? 2 : 1;
	return *p ? p + 1 : p;
}

bool sql_matches(struct arena *a, const char *text, const char *pattern, bool whole)
{
	char *out = arena_take(a, 3 * strlen(text) + 2);
	size_t n = 0;

	for (;; text++) {
		const char *end = behind_comment(text);

		if (end) {
			text = end;
			if (n && out[n - 1] != ' ')
				out[n++] = ' ';
		}
		if (!*text || *text == ';') {
			while (n && out[n - 1] == ' ')
				n--;
			out[n] = 0;
			if ((*text || whole) && n &&
			    fnmatch(pattern, out, FNM_EXTMATCH) == 0)
				return true;
			n = 0;
			if (!*text)
				return false;
		} else if (strchr("'\"`", *text)) {
			text = behind_quoted(text) - 1;
			out[n++] = '\'';
			out[n++] = '\'';
		} else if (isspace((unsigned char)*text)) {
			if (n && out[n - 1] != ' ')
				out[n++] = ' ';
		} else {
			out[n++] = (char)tolower((unsigned char)*text);
		}
	}
}
