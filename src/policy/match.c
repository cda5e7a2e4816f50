/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/judge.h"
#include "policy/sql.h"

bool name_matches(const char *pattern, const char *name)
{
	size_t i = 0;

	/* Nearly all are told apart by their first letters. */
	while (pattern[i] && pattern[i] == name[i])
		i++;
	if (pattern[i] == '*' || pattern[i] == '?' || pattern[i] == '[')
		return fnmatch(pattern, name, 0) == 0;
	return !pattern[i] && !name[i];
}

bool match_name(const struct cmd *c, const char *pattern)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(c->names) && c->names[i]; i++)
		if (name_matches(pattern, c->names[i]))
			return true;
	return false;
}

static bool match_program(const struct doc_match *m, const struct cmd *c)
{
	uint32_t i;

	for (i = 0; i < m->program_count; i++)
		if (match_name(c, m->program[i]))
			return true;
	return !m->program_count;
}

static enum tri match_text(const char *pattern, const struct word *w)
{
	size_t n = strcspn(pattern, "*?[\\");

	if (w->flags & WORD_OPEN) {
		/* "prefix*" is met if that much is known. */
		if (n && strcmp(pattern + n, "*") == 0 &&
		    strncasecmp(pattern, w->s, n) == 0)
			return TRI_YES;
		return TRI_MAYBE;
	}
	return fnmatch(pattern, w->s, FNM_CASEFOLD) == 0 ? TRI_YES : TRI_NO;
}

/* One alternative, "-r", "--recursive", "-X=DELETE", "of=x", for one option. */
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

/* Is it one of the options that @spec names, whatever its value? */
static bool is_option(const char *spec, const struct line *l, const struct opt *o)
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

/* "no", "none" and their like: the option is there to say that it is not meant. */
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

/* Does a name, which may be an abbreviation, say "no-" and an alternative of @spec? */
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

/* The word before it is an option of which we do not know that it takes no value: is it that? */
static bool may_be_value(const struct line *l, const struct opt *o)
{
	for (size_t i = 0; i < l->nopts; i++)
		if (l->opts[i].at + 1 == o->at && !l->opts[i].known &&
		    !l->opts[i].has_value)
			return true;
	return false;
}

/* The option that is of the same name as an alternative with a value, but has another one. */
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

/*
 * The same for an exception, which has to hold whatever else is on the line: "--dry-run" does
 * not if it is taken back (--no-dry-run, --dry-run=none, npm's --dry-run false), given twice with
 * different values, or perhaps a value itself.
 */
static enum tri match_exception(const struct line *l, const char *spec)
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

static enum tri match_options(const struct doc_match *m, const struct line *l)
{
	enum tri r = TRI_YES;
	uint32_t i;

	for (i = 0; i < m->options_count; i++)
		r = tri_and(r, match_option(l, m->options[i], NULL));
	return r;
}

/* "stash drop" against the first operands; *used: how many words that took. */
static enum tri match_command_words(const char *spec, const struct line *l, size_t *used)
{
	size_t i = 0;

	for (; *spec; i++) {
		size_t n = strcspn(spec, " ");
		char word[64];
		enum tri t;

		if (i >= l->noperands)
			return l->more ? TRI_MAYBE : TRI_NO;
		if (n >= sizeof(word))
			return TRI_NO;
		memcpy(word, spec, n);
		word[n] = 0;
		t = match_text(word, &l->operands[i].word);
		if (t != TRI_YES)
			return t;
		spec += n;
		spec += *spec == ' ';
	}
	*used = i;
	return TRI_YES;
}

static enum tri match_command(const struct doc_match *m, const struct line *l,
			      size_t *used)
{
	enum tri best = m->command_count ? TRI_NO : TRI_YES;
	uint32_t i;

	*used = 0;
	for (i = 0; i < m->command_count; i++) {
		size_t n = 0;
		enum tri t = match_command_words(m->command[i], l, &n);

		if (t == TRI_YES && n > *used)
			*used = n;
		best = tri_or(best, t);
	}
	return best;
}

static enum tri match_operands(const struct doc_match *m, const struct line *l,
			       size_t from)
{
	enum tri best = l->more ? TRI_MAYBE : TRI_NO;
	uint32_t i;
	size_t k;

	if (m->most && l->noperands - from > m->most - 1)
		return TRI_NO;
	if (!m->operands_count)
		return m->most && l->more ? TRI_MAYBE : TRI_YES;
	for (k = from; k < l->noperands; k++)
		for (i = 0; i < m->operands_count; i++)
			best = tri_or(best,
				      match_text(m->operands[i], &l->operands[k].word));
	return best;
}

static enum tri path_values(struct scene *s, const struct doc_paths *p,
			    const struct line *l, const char *const *names, uint32_t n,
			    bool *any)
{
	enum tri best = TRI_NO;
	uint32_t i;

	for (i = 0; i < n; i++) {
		size_t k;

		for (k = 0; k < l->nopts; k++) {
			if (!l->opts[k].has_value || !is_option(names[i], l, &l->opts[k]))
				continue;
			*any = true;
			best = tri_or(best, path_matches(s, p, &l->opts[k].value, true));
		}
	}
	return best;
}

/* Does the tool follow what it is given if that is a link? A destination it does. */
static bool follows(const struct doc_tool *t, const struct doc_paths *p,
		    const struct line *l)
{
	if (!t || !t->nofollow || p->which == WHICH_LAST)
		return true;
	for (uint32_t i = 0; i < t->follow_count; i++)
		if (match_option(l, t->follow[i], NULL) == TRI_YES)
			return true;
	return false;
}

static enum tri match_paths(struct scene *s, const struct doc_paths *p,
			    const struct line *l, size_t from)
{
	const struct doc_tool *t = l->tool;
	bool target = false, any = false;
	enum tri best = l->more ? TRI_MAYBE : TRI_NO, targets = TRI_NO;
	size_t end = l->noperands, k;
	bool follow;

	if (!p)
		return TRI_YES;
	follow = follows(t, p, l);
	if (t) {
		from += t->skip;
		targets = path_values(s, p, l, t->target, t->target_count, &target);
		if (p->which == WHICH_VALUE || p->which == WHICH_ANY)
			best = tri_or(best, path_values(s, p, l, t->values,
							t->values_count, &any));
	}
	if (p->which == WHICH_LAST && target)
		return targets;
	if (p->which == WHICH_VALUE)
		return best;
	if (p->which == WHICH_ANY)
		best = tri_or(best, targets);
	if (p->which == WHICH_LAST && end > from)
		from = end - 1;
	if (p->which == WHICH_OTHERS && !target && end > from)
		end--;
	for (k = from; k < end; k++)
		best = tri_or(best, path_matches(s, p, &l->operands[k].word, follow));
	return best;
}

static enum tri match_from(const struct doc_match *m, const struct cmd *c)
{
	const struct names *f;
	uint32_t i;

	if (!m->from_count)
		return TRI_YES;
	for (f = c->from; f; f = f->next)
		for (i = 0; i < m->from_count; i++)
			if (fnmatch(m->from[i], f->name, 0) == 0)
				return TRI_YES;
	return TRI_NO;
}

static enum tri sql_in(struct scene *s, const struct doc_match *m, const struct word *w)
{
	enum tri best = w->flags & WORD_OPEN ? TRI_MAYBE : TRI_NO;
	uint32_t i;

	for (i = 0; i < m->sql_count; i++)
		if (sql_matches(s->arena, w->s, m->sql[i], !(w->flags & WORD_OPEN)))
			best = TRI_YES;
	return best;
}

static enum tri match_sql(struct scene *s, const struct doc_match *m, const struct cmd *c,
			  const struct line *l)
{
	const struct doc_tool *t = l->tool;
	enum tri best = TRI_NO;
	uint32_t i;
	size_t k;

	if (!m->sql_count || !t)
		return m->sql_count ? TRI_NO : TRI_YES;
	for (i = 0; i < t->sql_count; i++) {
		const char *where = t->sql[i];
		struct word input = { c->input, 0, NULL };

		if (strcmp(where, "<") == 0) {
			if (c->input)
				best = tri_or(best, sql_in(s, m, &input));
			else if (c->input_open)
				best = tri_or(best, TRI_MAYBE);
			continue;
		}
		/* What a file says is not known. */
		if (where[0] == '@') {
			for (k = 0; k < l->nopts; k++)
				if (is_option(where + 1, l, &l->opts[k]))
					best = tri_or(best, TRI_MAYBE);
			continue;
		}
		for (k = 0; k < l->noperands && strcmp(where, ".") == 0; k++)
			best = tri_or(best, sql_in(s, m, &l->operands[k].word));
		for (k = 0; k < l->nopts; k++)
			if (l->opts[k].has_value && is_option(where, l, &l->opts[k]))
				best = tri_or(best, sql_in(s, m, &l->opts[k].value));
	}
	return best;
}

static enum tri match_unless(struct scene *s, const struct doc_match *m,
			     const struct line *as_typed)
{
	/* What opens must be meant: --forc is not --force-with-lease. */
	struct line line = *as_typed, *l = &line;
	enum tri r = TRI_NO;
	size_t used;
	uint32_t i;

	if (!m)
		return TRI_NO;
	line.strict = true;
	/* One of them is enough. */
	if (m->command_count)
		r = tri_or(r, match_command(m, l, &used));
	for (i = 0; i < m->options_count; i++)
		r = tri_or(r, match_exception(l, m->options[i]));
	if (m->operands_count)
		r = tri_or(r, match_operands(m, l, 0));
	s->loosens = true;
	if (m->paths)
		r = tri_or(r, match_paths(s, m->paths, l, 0));
	s->loosens = false;
	return r;
}

static enum tri match_rule(struct scene *s, const struct doc_rule *rule,
			   const struct cmd *c, const struct line *l)
{
	const struct doc_match *m = &rule->match;
	enum tri r = TRI_YES;
	size_t used = 0;

	if (!match_program(m, c) || m->writes)
		return TRI_NO;
	if (m->exe && !(m->exe & c->exe))
		return TRI_NO;
	r = tri_and(r, match_command(m, l, &used));
	if (r)
		r = tri_and(r, match_options(m, l));
	if (r)
		r = tri_and(r, match_operands(m, l, used));
	if (r)
		r = tri_and(r, match_from(m, c));
	if (r)
		r = tri_and(r, match_sql(s, m, c, l));
	if (r)
		r = tri_and(r, match_paths(s, m->paths, l, used));
	if (r)
		r = tri_and(r, tri_not(match_unless(s, rule->unless, l)));
	return r;
}

bool match_rules(struct scene *s, const struct cmd *c, const struct line *l)
{
	bool matched = false;
	uint64_t letters = 0;
	uint32_t i;
	size_t d;

	for (i = 0; i < ARRAY_SIZE(c->names) && c->names[i]; i++)
		letters |= doc_letters(c->names[i]);
	for (d = 0; d < s->p->docs_count; d++) {
		const struct doc *doc = s->p->docs[d];

		for (i = 0; i < doc->rules_count; i++) {
			const struct doc_rule *rule = &doc->rules[i];
			enum tri t;

			if (rule->letters && !(rule->letters & letters))
				continue;
			t = match_rule(s, rule, c, l);
			if (t == TRI_NO || policy_is_off(s->p, rule->id))
				continue;
			matched |= t == TRI_YES;
			judge_apply(s, rule->verdict, t, rule->id, rule->why, rule->hint);
		}
	}
	return matched;
}

void judge_write(struct scene *s, const struct word *target)
{
	size_t d;
	uint32_t i;

	for (d = 0; d < s->p->docs_count; d++) {
		const struct doc *doc = s->p->docs[d];

		for (i = 0; i < doc->rules_count; i++) {
			const struct doc_rule *rule = &doc->rules[i];
			enum tri t;

			if (!rule->match.writes)
				continue;
			t = path_matches(s, rule->match.writes, target, true);
			if (t == TRI_NO || policy_is_off(s->p, rule->id))
				continue;
			judge_apply(s, rule->verdict, t, rule->id, rule->why, rule->hint);
		}
	}
}
