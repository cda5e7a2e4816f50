/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/match.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/name.h"
#include "policy/option.h"
#include "policy/path.h"
#include "policy/sql.h"

static bool match_name(const struct cmd *c, const char *pattern)
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

static enum tri match_options(const struct doc_match *m, const struct line *l)
{
	enum tri r = TRI_YES;
	uint32_t i;

	for (i = 0; i < m->options_count; i++)
		r = tri_and(r, match_option(l, m->options[i], NULL));
	return r;
}

/*
 * Are the first operands the sub-command @spec, such as "stash drop"? *used: how many
 * operands make it up.
 */
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

/* Does the tool follow an operand that is a link? All tools follow a destination. */
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
		if (sql_matches(s->ctx.arena, w->s, m->sql[i], !(w->flags & WORD_OPEN)))
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
		/* The statements in a file are not known. */
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
	/* An exception must be spelt out: --forc does not stand for --force-with-lease. */
	struct line line = *as_typed, *l = &line;
	enum tri r = TRI_NO;
	size_t used;
	uint32_t i;

	if (!m)
		return TRI_NO;
	line.strict = true;
	/* An exception holds if any of its conditions does. */
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
