/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/option.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"

enum tri match_text(const char *pattern, const struct word *w)
{
	size_t n = strcspn(pattern, "*?[\\");

	if (w->flags & WORD_OPEN) {
		/* "prefix*" matches if the known part of the word has the prefix. */
		if (n && strcmp(pattern + n, "*") == 0 &&
		    strncasecmp(pattern, w->s, n) == 0)
			return TRI_YES;
		return TRI_MAYBE;
	}
	return fnmatch(pattern, w->s, FNM_CASEFOLD) == 0 ? TRI_YES : TRI_NO;
}

/* Does the option match one alternative: "-r", "--recursive", "-X=DELETE", "of=x"? */
static enum tri match_alternative(const char *alt, size_t len, const struct line *l,
				  const struct opt *o)
{
	bool is_long = len > 2 && alt[0] == '-' && alt[1] == '-';
	size_t dashes = strspn(alt, "-"), n;
	char pattern[256];
	const char *eq;

	alt += dashes;
	len -= dashes;
	eq = memchr(alt, '=', len);
	n = eq ? (size_t)(eq - alt) : len;
	if (n > 1 && (!l->tool || l->tool->style != STYLE_GNU))
		is_long = true;
	if (dashes == 0 || n > 1)
		is_long = true;
	if (o->is_long != is_long && !(l->tool && (l->tool->style == STYLE_LONG ||
						   l->tool->style == STYLE_SIGNAL)))
		return TRI_NO;
	if (n && alt[n - 1] == '*')
		return strncmp(o->name, alt, n - 1) == 0 ? TRI_YES : TRI_NO;
	if (strlen(o->name) > n || strncmp(o->name, alt, strlen(o->name)) != 0)
		return TRI_NO;
	if (strlen(o->name) < n && (o->exact || !o->is_long || l->strict))
		return TRI_NO;
	if (!eq)
		return TRI_YES;
	len -= n + 1;
	if (!o->has_value || len >= sizeof(pattern))
		return TRI_NO;
	memcpy(pattern, eq + 1, len);
	pattern[len] = 0;
	return match_text(pattern, &o->value);
}

enum tri match_option(const struct line *l, const char *spec, const struct opt **found)
{
	enum tri best = l->unsure ? TRI_MAYBE : TRI_NO;
	size_t i;

	while (*spec) {
		size_t n = strcspn(spec, "|");

		for (i = 0; i < l->nopts; i++) {
			enum tri t = match_alternative(spec, n, l, &l->opts[i]);

			if (t == TRI_YES && found && best != TRI_YES)
				*found = &l->opts[i];
			best = tri_or(best, t);
		}
		spec += n;
		spec += *spec == '|';
	}
	return best;
}

bool is_option(const char *spec, const struct line *l, const struct opt *o)
{
	while (*spec) {
		size_t n = strcspn(spec, "|"), len = n;

		len -= len && spec[len - 1] == '=';
		if (match_alternative(spec, len, l, o) == TRI_YES)
			return true;
		spec += n;
		spec += *spec == '|';
	}
	return false;
}

/* Does the value switch the option off: "no", "none", "0"? A value that is not known may. */
static bool says_no(const struct word *w)
{
	static const char *const words[] = {
		"false", "no", "none", "off", "0", "n", "f"
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(w->s, words[i]) == 0)
			return true;
	return w->flags & WORD_OPEN;
}

/* Is the option, which may be abbreviated, "no-" and an alternative of @spec? */
static bool negates(const struct opt *o, const char *spec)
{
	size_t len;

	if (!o->is_long || strncmp(o->name, "no-", 3) != 0 || !o->name[3])
		return false;
	len = strlen(o->name + 3);
	while (*spec) {
		size_t n = strcspn(spec, "|=");
		size_t dashes = strspn(spec, "-");

		if (n - dashes >= len && strncmp(spec + dashes, o->name + 3, len) == 0)
			return true;
		spec += strcspn(spec, "|");
		spec += *spec == '|';
	}
	return false;
}

/*
 * May @o be the value of the option before it? That option is unknown, so it may take a
 * value.
 */
static bool may_be_value(const struct line *l, const struct opt *o)
{
	for (size_t i = 0; i < l->nopts; i++)
		if (l->opts[i].at + 1 == o->at && !l->opts[i].known &&
		    !l->opts[i].has_value)
			return true;
	return false;
}

/* Does @o have the name of an alternative, but another value? */
static bool contradicts(const struct line *l, const char *spec, const struct opt *o)
{
	bool named = false;

	while (*spec) {
		size_t n = strcspn(spec, "|");
		const char *eq = memchr(spec, '=', n);

		if (match_alternative(spec, n, l, o) == TRI_YES)
			return false;
		if (eq && match_alternative(spec, (size_t)(eq - spec), l, o) == TRI_YES)
			named = true;
		spec += n;
		spec += *spec == '|';
	}
	return named;
}

enum tri match_exception(const struct line *l, const char *spec)
{
	const struct opt *found = NULL;
	enum tri r = match_option(l, spec, &found);
	size_t i;

	if (r != TRI_YES || !found)
		return r;
	for (i = 0; i < l->nopts; i++)
		if (strcmp(l->opts[i].name, "=") == 0 || negates(&l->opts[i], spec) ||
		    contradicts(l, spec, &l->opts[i]) ||
		    (is_option(spec, l, &l->opts[i]) &&
		     (may_be_value(l, &l->opts[i]) ||
		      (l->opts[i].has_value && !strchr(spec, '=') &&
		       says_no(&l->opts[i].value)))))
			return TRI_NO;
	for (i = 0; i < l->noperands; i++)
		if (found->is_long && strcasecmp(l->operands[i].word.s, "false") == 0)
			return TRI_NO;
	return TRI_YES;
}
