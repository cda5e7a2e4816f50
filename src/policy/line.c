/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/line.h"

#include <string.h>

/* The position in a command line that is being parsed. */
struct reader {
	struct scene *s;
	const struct doc_tool *tool;
	const struct doc_options *sub; /* options of the sub-command, or NULL */
	const struct cmd *c;
	struct line *l;
	size_t at;
	bool ended; /* no further word is an option */
};

static struct opt *add_opt(struct reader *r, const char *name, bool is_long)
{
	struct opt *o = ARENA_PUSH(r->s->ctx.arena, r->l->opts, r->l->nopts,
				   r->l->opts_cap);

	*o = (struct opt){ .name = name, .is_long = is_long, .exact = true, .at = r->at };
	return o;
}

static void add_operand(struct reader *r, const struct word *w)
{
	struct operand *o = ARENA_PUSH(r->s->ctx.arena, r->l->operands, r->l->noperands,
				       r->l->operands_cap);

	o->word = *w;
	o->at = r->at;
}

static void take_value(struct reader *r, struct opt *o)
{
	o->has_value = true;
	if (r->at + 1 < r->c->n)
		o->value = r->c->words[++r->at];
	else
		o->value = (struct word){ "", r->c->more ? WORD_OPEN : 0, NULL };
}

/*
 * The kind of an option letter: ' ' takes no value, ':' takes one, ';' takes one only in
 * the same word; 0: unknown.
 */
static char letter_kind(const struct doc_options *o, char c)
{
	const char *p;

	if (!o || !o->flags || c == ':' || c == ';')
		return 0;
	p = strchr(o->flags, c);
	if (!p)
		return 0;
	return p[1] == ':' || p[1] == ';' ? p[1] : ' ';
}

static void read_letters(struct reader *r, const struct word *w, const char *p)
{
	for (; *p; p++) {
		char kind = letter_kind(r->sub, *p);
		struct opt *o;

		if (!kind && r->tool)
			kind = letter_kind(&r->tool->options, *p);
		o = add_opt(r, arena_str(r->s->ctx.arena, p, 1), false);
		o->known = kind;
		if (kind != ':' && kind != ';')
			continue;
		if (p[1]) {
			o->has_value = true;
			o->value = *w;
			o->value.s = p + 1 + (p[1] == '=');
		} else if (kind == ':') {
			take_value(r, o);
		}
		return;
	}
	if (w->flags & WORD_OPEN)
		r->l->unsure = true;
}

/* tar xfC ARCHIVE DIR: letters without a dash, then their values in order. */
static void read_bundle(struct reader *r, const char *p)
{
	for (; *p; p++) {
		struct opt *o = add_opt(r, arena_str(r->s->ctx.arena, p, 1), false);
		char kind = letter_kind(r->sub, *p);

		if (!kind && r->tool)
			kind = letter_kind(&r->tool->options, *p);
		if (kind == ':')
			take_value(r, o);
	}
}

/*
 * The long option in the table with this name or abbreviation; NULL if there is none.
 * *value: does it take a value? *exact: is the name whole?
 */
static const char *find_long(struct reader *r, const struct doc_options *o,
			     const char *name, size_t len, bool *value, bool *exact)
{
	const char *found = NULL;
	uint32_t i;

	for (i = 0; o && i < o->words_count; i++) {
		size_t n = strcspn(o->words[i], "=");

		if (n < len || memcmp(o->words[i], name, len) != 0)
			continue;
		if (n == len || !found) {
			*value = o->words[i][n] == '=';
			*exact = n == len;
			found = arena_str(r->s->ctx.arena, o->words[i], n);
		}
		if (n == len)
			break;
	}
	return found;
}

static void read_long(struct reader *r, const struct word *w, const char *name)
{
	size_t len = strcspn(name, "=");
	bool value = false, exact = true;
	const char *full = NULL;
	struct opt *o;

	if (!len)
		return;
	if (r->sub)
		full = find_long(r, r->sub, name, len, &value, &exact);
	if ((!full || !exact) && r->tool) {
		bool v = false, x = false;
		const char *other = find_long(r, &r->tool->options, name, len, &v, &x);

		if (other && (!full || x)) {
			full = other;
			value = v;
			exact = x;
		}
	}
	o = add_opt(r, arena_str(r->s->ctx.arena, name, len), true);
	/* An option that the table does not have may be an abbreviation of another. */
	o->known = full;
	o->exact = exact || (r->tool && r->tool->style == STYLE_LONG);
	if (name[len] == '=') {
		o->has_value = true;
		o->value = *w;
		o->value.s = name + len + 1;
	} else if (value) {
		take_value(r, o);
	}
	if (w->flags & WORD_OPEN && !o->has_value)
		r->l->unsure = true;
}

/* kill: the first word with a dash is a signal, and all other words are processes. */
static void read_signal(struct reader *r, const struct word *w)
{
	if (r->l->nopts || r->l->noperands) {
		add_operand(r, w);
	} else if (strcmp(w->s, "-s") == 0 || strcmp(w->s, "-n") == 0 ||
		   strcmp(w->s, "--signal") == 0) {
		take_value(r, add_opt(r, "s", false));
	} else {
		add_opt(r, w->s + 1, true);
	}
}

static const struct doc_options *find_sub(const struct doc_tool *t, const char *name)
{
	size_t len = strlen(name);
	uint32_t i;

	for (i = 0; i < t->commands_count; i++) {
		const char *p = t->commands[i].name;

		while (*p) {
			size_t n = strcspn(p, ",");

			if (n == len && memcmp(p, name, n) == 0)
				return &t->commands[i].options;
			p += n + (p[n] == ',');
		}
	}
	return NULL;
}

static void read_operand(struct reader *r, const struct word *w)
{
	const struct doc_tool *t = r->tool;
	const char *eq = strchr(w->s, '=');

	if (t && t->style == STYLE_ASSIGN && eq && eq > w->s) {
		struct opt *o = add_opt(
			r, arena_str(r->s->ctx.arena, w->s, (size_t)(eq - w->s)), true);

		o->has_value = true;
		o->value = *w;
		o->value.s = eq + 1;
		return;
	}
	if (t && t->style == STYLE_BUNDLE && r->at == 1 && !(w->flags & WORD_OPEN)) {
		read_bundle(r, w->s);
		return;
	}
	add_operand(r, w);
	if (t && t->depth && r->l->noperands == 1)
		r->sub = find_sub(t, w->s);
	if (t && t->first)
		r->ended = true;
}

/* Skips the command behind find's -exec. */
static bool read_run(struct reader *r, const struct word *w)
{
	const struct doc_inner *in = r->tool ? r->tool->inner : NULL;
	uint32_t i;

	for (i = 0; in && i < in->runs_count; i++) {
		if (strcmp(in->runs[i], w->s) != 0)
			continue;
		add_opt(r, w->s + 1, true);
		while (r->at + 1 < r->c->n) {
			const char *next = r->c->words[++r->at].s;

			if (strcmp(next, ";") == 0 || strcmp(next, "+") == 0)
				break;
		}
		return true;
	}
	return false;
}

static void read_word(struct reader *r, const struct word *w)
{
	enum doc_style style = r->tool ? r->tool->style : STYLE_GNU;

	if (read_run(r, w))
		return;
	if (style == STYLE_LONG && w->s[0] && strchr("()!,", w->s[0]) && !w->s[1])
		return;
	if (w->flags & WORD_OPEN && (!w->s[0] || w->flags & WORD_SPLIT)) {
		/* The word may be anything, even an option. */
		if (!r->ended)
			r->l->unsure = true;
		if (w->flags & WORD_SPLIT)
			r->l->more = true;
	}
	if (r->ended || w->s[0] != '-' || !w->s[1]) {
		read_operand(r, w);
	} else if (strcmp(w->s, "--") == 0) {
		/* Rules see -- as an option without a name. */
		add_opt(r, "", false)->known = true;
		r->ended = true;
	} else if (style == STYLE_SIGNAL) {
		read_signal(r, w);
	} else if (style == STYLE_LONG) {
		read_long(r, w, w->s + 1 + (w->s[1] == '-'));
	} else if (w->s[1] == '-') {
		read_long(r, w, w->s + 2);
	} else {
		/*
		 * For a program without a table, -word may be a long option or several
		 * letters.
		 */
		if (!r->tool && w->s[2])
			read_long(r, w, w->s + 1);
		read_letters(r, w, w->s + 1);
	}
}

void line_parse(struct scene *s, const struct doc_tool *tool, const struct cmd *c,
		struct line *l)
{
	struct reader r = { s, tool, NULL, c, l, 1, false };

	memset(l, 0, sizeof(*l));
	l->tool = tool;
	for (; r.at < c->n; r.at++)
		read_word(&r, &c->words[r.at]);
	if (c->more) {
		l->more = true;
		l->unsure |= !r.ended;
	}
}
