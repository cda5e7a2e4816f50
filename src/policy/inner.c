/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/inner.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "policy/code.h"
#include "policy/command.h"
#include "policy/judge.h"
#include "policy/option.h"
#include "policy/variable.h"
#include "shell/quote.h"
#include "shell/shell.h"

/* For so many of its start directories, find's commands are judged. */
enum { TOPS_MAX = 32 };

static bool is_stdin(const struct word *w)
{
	return strcmp(w->s, "-") == 0 || strcmp(w->s, "/dev/stdin") == 0 ||
	       strcmp(w->s, "/proc/self/fd/0") == 0 || strcmp(w->s, "/dev/fd/0") == 0;
}

static bool has_option(const struct line *l, const char *const *specs, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (match_option(l, specs[i], NULL) == TRI_YES)
			return true;
	return false;
}

/* Does the command read its program from its standard input? */
static bool reads_program(const struct doc_inner *in, const struct line *l)
{
	if (!in->stdin_text && !in->stdin_code)
		return false;
	if (has_option(l, in->string, in->string_count) ||
	    has_option(l, in->texts, in->texts_count) ||
	    has_option(l, in->code, in->code_count) ||
	    has_option(l, in->modules, in->modules_count))
		return false;
	return l->noperands <= in->skip || is_stdin(&l->operands[0].word) ||
	       (in->stdin_text && match_option(l, "-s", NULL) == TRI_YES);
}

const struct names *program_source(const struct cmd *c, const struct line *l)
{
	const struct doc_inner *in = l->tool ? l->tool->inner : NULL;
	size_t i;

	/*
	 * The program may be an operand or option: sh -c "$(…)", eval "$(…)", the file
	 * <(…).
	 */
	for (i = 0; in && i < l->nopts; i++)
		if (l->opts[i].has_value && l->opts[i].value.from)
			return l->opts[i].value.from;
	if (in && (in->script || in->text) && l->noperands && l->operands[0].word.from)
		return l->operands[0].word.from;
	return in && reads_program(in, l) ? c->from : NULL;
}

/*
 * For a @spec such as "-c=alias.*=!", the part of @value behind the pattern; NULL if the
 * pattern does not match.
 */
static const char *behind_pattern(struct scene *s, const char *spec, const char *value)
{
	const char *eq = strchr(spec, '=');
	size_t i;

	if (!eq)
		return value;
	for (i = 1; value[i - 1]; i++)
		if (fnmatch(eq + 1, arena_str(s->ctx.arena, value, i), FNM_CASEFOLD) == 0)
			return value + i;
	return NULL;
}

static bool option_is(const struct line *l, const char *spec, const struct opt *o)
{
	struct line one = { .tool = l->tool, .nopts = 1 };
	struct opt copy = *o;
	char name[64];
	size_t n = strcspn(spec, "=");

	if (n >= sizeof(name))
		return false;
	memcpy(name, spec, n);
	name[n] = 0;
	one.opts = &copy;
	return match_option(&one, name, NULL) == TRI_YES;
}

static void judge_value(struct scene *s, const struct cmd *c, const struct word *w,
			const char *text)
{
	if (w->flags & WORD_UNSURE)
		judge_defer(s);
	if (!(w->flags & WORD_OPEN))
		shell_run(&s->ctx, text, strlen(text), c, 0);
}

/* Joins @before and the words from @at on; NULL if some of them are not known. */
static const char *joined(struct scene *s, const struct cmd *c, size_t at, bool quote,
			  const char *before)
{
	size_t n = 0, cap = 0;
	char *text = NULL;
	const char *p;

	for (p = before; *p; p++)
		*ARENA_PUSH(s->ctx.arena, text, n, cap) = *p;
	for (; at < c->n; at++) {
		if (c->words[at].flags & WORD_OPEN)
			return NULL;
		if (c->words[at].flags & WORD_NAMES)
			judge_defer(s);
		if (n)
			*ARENA_PUSH(s->ctx.arena, text, n, cap) = ' ';
		p = quote ? shell_quoted(s->ctx.arena, c->words[at].s) : c->words[at].s;
		for (; *p; p++)
			*ARENA_PUSH(s->ctx.arena, text, n, cap) = *p;
	}
	*ARENA_PUSH(s->ctx.arena, text, n, cap) = 0;
	return c->more ? NULL : text;
}

/*
 * Judges the values of options that are text or commands. True: the operands are
 * arguments of these.
 */
static bool judge_options(struct scene *s, const struct cmd *c, const struct line *l)
{
	const struct doc_inner *in = l->tool->inner;
	size_t rest = l->noperands ? l->operands[0].at : c->n;
	bool taken = false;
	const char *text;
	uint32_t k;
	size_t i;

	for (i = 0; i < l->nopts; i++) {
		const struct opt *o = &l->opts[i];

		if (!o->has_value)
			continue;
		for (k = 0; k < in->texts_count; k++) {
			if (!option_is(l, in->texts[k], o))
				continue;
			text = behind_pattern(s, in->texts[k], o->value.s);
			if (text)
				judge_value(s, c, &o->value, text);
			taken |= !strchr(in->texts[k], '=');
		}
		for (k = 0; k < in->again_count; k++) {
			if (!option_is(l, in->again[k], o))
				continue;
			text = behind_pattern(s, in->again[k], o->value.s);
			if (text && text[0] != '!')
				judge_value(s, c, &o->value,
					    arena_printf(s->ctx.arena, "%s %s",
							 c->words[0].s, text));
		}
		for (k = 0; k < in->splits_count; k++) {
			if (!option_is(l, in->splits[k], o))
				continue;
			text = joined(s, c, rest, true, o->value.s);
			if (text)
				judge_value(s, c, &o->value, text);
			else
				judge_defer(s);
			taken = true;
		}
		for (k = 0; k < in->modules_count; k++) {
			struct cmd inner = { .more = c->more };
			size_t n = c->n - rest;

			if (!option_is(l, in->modules[k], o))
				continue;
			inner.words = arena_take(s->ctx.arena,
						 (n + 1) * sizeof(struct word));
			inner.words[0] = o->value;
			memcpy(inner.words + 1, c->words + rest, n * sizeof(struct word));
			inner.n = n + 1;
			judge_command(s, &inner);
			taken = true;
		}
	}
	return taken;
}

/* The word @w of a command of find, in which {} becomes a pattern for the files below @top. */
static struct word found_in(struct scene *s, const struct word *w, const struct word *top)
{
	const char *at = strstr(w->s, "{}"), *p = w->s;
	struct word out = *w;
	size_t n = 0, cap = 0;
	char *text = NULL;

	if (!at)
		return out;
	out.flags |= WORD_NAMES;
	out.flags |= (top->flags & WORD_OPEN) | WORD_GLOB;
	if (top->flags & WORD_OPEN) {
		out.s = arena_str(s->ctx.arena, w->s, (size_t)(at - w->s));
		return out;
	}
	for (; *p; p++) {
		const char *q;

		if (strncmp(p, "{}", 2) != 0) {
			*ARENA_PUSH(s->ctx.arena, text, n, cap) = *p;
			continue;
		}
		for (q = top->s; *q; q++)
			*ARENA_PUSH(s->ctx.arena, text, n, cap) = *q;
		*ARENA_PUSH(s->ctx.arena, text, n, cap) = '/';
		*ARENA_PUSH(s->ctx.arena, text, n, cap) = '*';
		p++;
	}
	out.s = arena_str(s->ctx.arena, text, n);
	return out;
}

static void judge_run(struct scene *s, const struct cmd *c, const struct line *l,
		      size_t from, size_t to)
{
	static const struct word here = { ".", 0, NULL };
	size_t tops = l->noperands ? l->noperands : 1, t, i;

	if (s->text && tops > TOPS_MAX) {
		judge_defer(s);
		tops = TOPS_MAX;
	}
	for (t = 0; t < tops && from < to; t++) {
		const struct word *top = l->noperands ? &l->operands[t].word : &here;
		struct cmd inner = { .n = to - from };

		inner.words = arena_take(s->ctx.arena, inner.n * sizeof(struct word));
		for (i = 0; i < inner.n; i++)
			inner.words[i] = found_in(s, &c->words[from + i], top);
		judge_command(s, &inner);
	}
}

static void judge_runs(struct scene *s, const struct cmd *c, const struct line *l)
{
	const struct doc_inner *in = l->tool->inner;
	size_t i, end;
	uint32_t k;

	for (i = 1; i < c->n; i++) {
		for (k = 0; k < in->runs_count; k++)
			if (strcmp(in->runs[k], c->words[i].s) == 0)
				break;
		if (k == in->runs_count)
			continue;
		for (end = i + 1; end < c->n; end++)
			if (strcmp(c->words[end].s, ";") == 0 ||
			    strcmp(c->words[end].s, "+") == 0)
				break;
		judge_run(s, c, l, i + 1, end);
		i = end;
	}
}

static bool is_assignment(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	return n && s[n] == '=' && !isdigit((unsigned char)s[0]);
}

/* Adds the words that xargs takes from its input, if that is known. */
static void append_input(struct scene *s, const struct cmd *c, const struct line *l,
			 struct cmd *inner)
{
	const char *p = c->input, *token = "{}";
	const struct opt *o = NULL;
	size_t cap = inner->n, i;
	struct word *words = arena_take(s->ctx.arena, (cap + 1) * sizeof(*words));
	bool replaced = false;

	/* xargs -I%: the word % stands for the input. */
	if (match_option(l, "-I", &o) == TRI_YES && o->has_value && o->value.s[0])
		token = o->value.s;
	memcpy(words, inner->words, inner->n * sizeof(*words));
	for (i = 0; i < inner->n; i++) {
		const char *at = strstr(words[i].s, token);

		if (!at)
			continue;
		replaced = true;
		words[i].flags |= WORD_OPEN;
		words[i].s = arena_str(s->ctx.arena, words[i].s,
				       (size_t)(at - words[i].s));
	}
	inner->words = words;
	inner->more = c->more || (!p && !replaced);
	for (i = 0; p && !replaced && i < 4096; i++) {
		size_t n;

		p += strspn(p, " \t\n");
		n = strcspn(p, " \t\n");
		if (!n)
			break;
		*ARENA_PUSH(s->ctx.arena, inner->words, inner->n,
			    cap) = (struct word){ arena_str(s->ctx.arena, p, n), 0,
						  NULL };
		p += n;
	}
}

/*
 * Judges text (NULL: not known) for a shell, here or on another machine. The shell has
 * the standard input of @c.
 */
static void judge_text(struct scene *s, const struct cmd *c, const char *text,
		       bool remote)
{
	const char *cwd = s->ctx.cwd, *workspace = s->workspace, *home = s->ctx.home;

	if (!text) {
		judge_defer(s);
		return;
	}
	if (remote)
		s->ctx.cwd = s->workspace = s->ctx.home = NULL;
	shell_run(&s->ctx, text, strlen(text), c, 0);
	s->ctx.cwd = cwd;
	s->workspace = workspace;
	s->ctx.home = home;
}

/*
 * The number of operands that make up one of the sub-commands in @list; 0: the line has
 * none of them.
 */
static size_t sub_command(const char *const *list, uint32_t n, const struct line *l)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const char *p = list[i];
		size_t k = 0;

		for (; *p && k < l->noperands; k++) {
			size_t len = strcspn(p, " ");

			if (strlen(l->operands[k].word.s) != len ||
			    memcmp(p, l->operands[k].word.s, len) != 0)
				break;
			p += len + (p[len] == ' ');
		}
		if (!*p)
			return k;
	}
	return 0;
}

/* Judges a command, which may run on another machine. */
static void judge_there(struct scene *s, struct cmd *c, bool remote)
{
	const char *cwd = s->ctx.cwd, *workspace = s->workspace, *home = s->ctx.home;

	if (remote)
		s->ctx.cwd = s->workspace = s->ctx.home = NULL;
	judge_command(s, c);
	s->ctx.cwd = cwd;
	s->workspace = workspace;
	s->ctx.home = home;
}

/*
 * The text of a command of parallel with @one in the place of {}, {.}, {/} and so on, or
 * behind it.
 */
static const char *filled(struct scene *s, const char *text, const char *one)
{
	const char *out = "", *p = text, *at;
	bool any = false;

	for (;;) {
		size_t n;

		at = strchr(p, '{');
		if (!at)
			break;
		n = 1 + strspn(at + 1, "./#%0123456789");
		if (at[n] == '}') {
			any = true;
			out = arena_printf(s->ctx.arena, "%s%.*s%s", out, (int)(at - p),
					   p, one);
			p = at + n + 1;
		} else {
			out = arena_printf(s->ctx.arena, "%s%.*s", out, (int)(at + 1 - p),
					   p);
			p = at + 1;
		}
		if (strlen(out) > POLICY_TEXT_MAX)
			break;
	}
	return arena_printf(s->ctx.arena, any ? "%s%s" : "%s%s %s", out, p, one);
}

/*
 * parallel COMMAND ::: a b: a shell runs the command with each of the operands. False:
 * there is no list of operands.
 */
static bool judge_each(struct scene *s, const struct cmd *c, const struct line *l)
{
	size_t first = l->operands[0].at, mark = first, k;
	const char *text = "", *one;

	while (mark < c->n && strncmp(c->words[mark].s, ":::", 3) != 0)
		mark++;
	if (mark == c->n && c->more)
		return false;
	for (k = first; k < mark; k++) {
		if (c->words[k].flags & WORD_OPEN)
			judge_defer(s);
		text = arena_printf(s->ctx.arena, "%s%s%s", text, *text ? " " : "",
				    c->words[k].s);
	}
	if (mark == c->n)
		return false;
	/* Operands from a file (::::) and several lists are not followed. */
	if (c->words[mark].s[3] || mark + 1 == c->n)
		judge_defer(s);
	for (k = mark + 1; k < c->n && s->ctx.steps; k++) {
		if (c->words[k].flags & WORD_OPEN ||
		    strncmp(c->words[k].s, ":::", 3) == 0) {
			judge_defer(s);
			continue;
		}
		one = c->words[k].s;
		if (c->words[k].flags & WORD_GLOB &&
		    one[strcspn(one, " \t\n$`\\\"'&|;<>(){}")])
			judge_defer(s);
		else if (*text && !(c->words[k].flags & WORD_GLOB))
			one = shell_quoted(s->ctx.arena, one);
		one = *text ? filled(s, text, one) : one;
		shell_run(&s->ctx, one, strlen(one), NULL, 0);
	}
	return true;
}

static void judge_operands(struct scene *s, const struct cmd *c, const struct line *l)
{
	const struct doc_inner *in = l->tool->inner;
	struct cmd inner = { .input = c->input,
			     .input_open = c->input_open,
			     .from = c->from,
			     .more = c->more };
	size_t k = in->skip;

	if (in->after_count) {
		size_t used = sub_command(in->after, in->after_count, l);

		if (!used)
			return;
		k += used;
	}
	/* env has a lone - for its option -i. */
	while (in->assign && k < l->noperands &&
	       (is_assignment(l->operands[k].word.s) ||
		(k == in->skip && strcmp(l->operands[k].word.s, "-") == 0))) {
		struct word value = l->operands[k].word;
		size_t len = strcspn(value.s, "=");
		const char *name = value.s;

		if (name[len]) {
			value.s += len + 1;
			judge_variable(s, name, len, &value);
		}
		k++;
	}
	if (k >= l->noperands || (in->each && judge_each(s, c, l)))
		return;
	if (in->text) {
		judge_text(s, c, joined(s, c, l->operands[k].at, false, ""), in->remote);
		return;
	}
	inner.words = c->words + l->operands[k].at;
	inner.n = c->n - l->operands[k].at;
	/* A reserved word of the shell may stand before the command: time { … */
	while (inner.n > 1 && strcmp(inner.words[0].s, "{") == 0) {
		inner.words++;
		inner.n--;
	}
	/* flock FILE -c TEXT */
	if (inner.n > 1 && strcmp(inner.words[0].s, "-c") == 0) {
		judge_value(s, c, &inner.words[1], inner.words[1].s);
		return;
	}
	if (in->append)
		append_input(s, c, l, &inner);
	judge_there(s, &inner, in->remote);
}

/* Judges texts in the program's own language that hold lines for a shell. */
static void judge_places(struct scene *s, const struct cmd *c, const struct line *l)
{
	const struct doc_inner *in = l->tool->inner;
	uint32_t i;
	size_t k;

	for (i = 0; i < in->lines_count; i++) {
		const char *where = in->lines[i];

		if (strcmp(where, "<") == 0) {
			if (c->input)
				judge_lines(s, in, NULL, c->input);
			else if (c->input_open || c->from)
				judge_defer(s);
			continue;
		}
		for (k = 0; k < l->noperands; k++)
			if (strcmp(where, ".") == 0 ||
			    (strcmp(where, "+") == 0 && l->operands[k].word.s[0] == '+'))
				judge_lines(s, in, NULL, word_code(&l->operands[k].word));
		for (k = 0; k < l->nopts; k++)
			if (l->opts[k].has_value && option_is(l, where, &l->opts[k]))
				judge_lines(s, in, NULL, word_code(&l->opts[k].value));
	}
}

/* Judges code on the command line: the value of an option, or the first operand. */
static void judge_program(struct scene *s, const struct line *l)
{
	const struct doc_inner *in = l->tool->inner;
	bool any = false;
	uint32_t i;
	size_t k;

	for (k = 0; k < l->nopts; k++) {
		for (i = 0; i < in->program_count; i++)
			if (l->opts[k].has_value &&
			    option_is(l, in->program[i], &l->opts[k])) {
				any = true;
				judge_code(s, in, word_code(&l->opts[k].value));
			}
		for (i = 0; i < in->code_count; i++)
			if (l->opts[k].has_value &&
			    option_is(l, in->code[i], &l->opts[k])) {
				any = true;
				judge_calls(s, in, word_code(&l->opts[k].value));
			}
	}
	if (in->reads && !any && l->noperands)
		judge_code(s, in, word_code(&l->operands[0].word));
	else if (in->reads && !any && l->more)
		judge_defer(s);
}

/* Does the sub-command take its commands from a file, as make does? The file is not read. */
static bool follows_recipe(const struct doc_inner *in, const struct line *l)
{
	uint32_t i;

	for (i = 0; i < in->recipes_count; i++)
		if (strcmp(in->recipes[i], "*") == 0 ||
		    (l->noperands && strcmp(in->recipes[i], l->operands[0].word.s) == 0))
			return true;
	return false;
}

static bool runs_more(const struct doc_inner *in)
{
	return in->command || in->script || in->string_count || in->texts_count ||
	       in->splits_count || in->runs_count || in->code_count || in->lines_count ||
	       in->modules_count;
}

void judge_inner(struct scene *s, const struct cmd *c, const struct line *l)
{
	const struct doc_inner *in = l->tool ? l->tool->inner : NULL;

	if (!in || has_option(l, in->never, in->never_count))
		return;
	/*
	 * A word that is not known may be an option that runs a program, or one in front
	 * of the command.
	 */
	if (l->unsure && runs_more(in))
		judge_defer(s);
	if (follows_recipe(in, l))
		judge_defer(s);
	if (in->runs_count)
		judge_runs(s, c, l);
	judge_places(s, c, l);
	judge_program(s, l);
	if (in->after_text_count) {
		size_t used = sub_command(in->after_text, in->after_text_count, l);

		if (used && used < l->noperands)
			judge_text(s, c, joined(s, c, l->operands[used].at, false, ""),
				   in->remote);
	}
	if (has_option(l, in->string, in->string_count) && l->noperands) {
		/* sh -c TEXT NAME ARG... */
		const struct word *w = &l->operands[0].word;

		if (w->flags & WORD_UNSURE)
			judge_defer(s);
		if (!(w->flags & WORD_OPEN))
			shell_run(&s->ctx, w->s, strlen(w->s), c, l->operands[0].at + 2);
		return;
	}
	if (judge_options(s, c, l))
		return;
	if (has_option(l, in->code, in->code_count))
		judge_defer(s);
	if (reads_program(in, l)) {
		if (c->input && in->stdin_text)
			judge_text(s, NULL, c->input, in->remote);
		else if (c->input || c->input_open || c->from || l->more)
			judge_defer(s);
	} else if (in->command || in->script || in->text) {
		judge_operands(s, c, l);
		/* The text does not show the commands in the script. */
		if (in->script)
			judge_defer(s);
	}
}
