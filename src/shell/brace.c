/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/brace.h"

#include <string.h>

size_t skip_quoted(const char *s, size_t i, size_t len)
{
	char close = 0;
	size_t depth = 0;

	if (s[i] == '\\')
		return i + 2 < len ? i + 2 : len;
	if (s[i] == '$' && i + 1 < len && strchr("'\"", s[i + 1]))
		i++;
	else if (s[i] == '\'' || s[i] == '"' || s[i] == '`')
		;
	else if (i + 1 < len && s[i] == '$' && s[i + 1] == '{')
		close = '}';
	else if (i + 1 < len && strchr("$<>", s[i]) && s[i + 1] == '(')
		close = ')';
	else
		return i;
	if (!close) {
		char quote = s[i++];
		bool plain = quote == '\'' && !(i > 1 && s[i - 2] == '$');

		for (; i < len && s[i] != quote; i++)
			i += !plain && s[i] == '\\';
		return i < len ? i + 1 : len;
	}
	for (i++; i < len; i++) {
		depth += s[i] == (close == '}' ? '{' : '(');
		depth -= s[i] == close;
		if (!depth)
			return i + 1;
	}
	return len;
}

bool find_braces(const char *s, size_t len, struct braces *b)
{
	size_t i, k, depth = 0, begin = 0;
	bool comma = false, dots = false;

	for (i = 0; i < len; i++) {
		k = skip_quoted(s, i, len);
		if (k != i) {
			i = k - 1;
			continue;
		}
		if (s[i] == '{' && depth++ == 0) {
			begin = i;
			comma = dots = false;
		} else if (s[i] == ',' && depth == 1) {
			comma = true;
		} else if (s[i] == '.' && i + 1 < len && s[i + 1] == '.' && depth == 1) {
			dots = true;
		} else if (s[i] == '}' && depth && --depth == 0 && (comma || dots)) {
			*b = (struct braces){ begin, i, !comma };
			return true;
		}
	}
	return false;
}
