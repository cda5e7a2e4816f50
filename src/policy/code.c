/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of other languages, as far as it runs programs. Of most languages only calls with
 * constant arguments and lines for a shell are read; awk and sed are parsed. CODE_GAP
 * stands for the unknown parts of a text.
 */
#include "policy/code.h"

#include <ctype.h>
#include <string.h>

#include "policy/match.h"
#include "shell/quote.h"
#include "shell/shell.h"

enum { LITERALS_MAX = 32 };

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/*
 * Judges text for a shell. If a part of the text is not known, the verdict is left to the
 * exec.
 */
static void judge_part(struct scene *s, const struct cmd *c, const char *text, size_t len)
{
	if (memchr(text, CODE_GAP, len))
		judge_defer(s);
	else if (len)
		shell_run(&s->ctx, arena_str(s->ctx.arena, text, len), len, c, 0);
}

/*
 * The string in quotes at @p, without the quotes; NULL if there is none. *end is the
 * position behind the string.
 */
static const char *read_literal(struct scene *s, const char *p, const char **end)
{
	char quote, *out;
	size_t n = 0;

	/* Some languages put letters before the quote. */
	if (strchr("rbuf", *p) && *p && p[1] && strchr("'\"", p[1]))
		p++;
	quote = *p;
	if (!quote || !strchr("'\"`", quote))
		return NULL;
	if (p[1] == quote && p[2] == quote)
		p += 2;
	out = arena_take(s->ctx.arena, strlen(p) + 1);
	for (p++; *p && *p != quote; p++) {
		if (*p == '\\' && p[1]) {
			p++;
			out[n++] = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
		} else {
			out[n++] = *p;
		}
	}
	if (!*p)
		return NULL;
	out[n] = 0;
	*end = p + 1;
	return out;
}

/*
 * Judges the strings among the arguments of a call. One string is shell text, several are
 * the words of a command.
 */
static void judge_arguments(struct scene *s, const char *p, const char *prefix)
{
	const char *text = NULL, *one;
	size_t n = 0;

	while (n < LITERALS_MAX) {
		p += strspn(p, n ? " \t\n,[(" : " \t\n[(");
		one = read_literal(s, p, &p);
		if (!one)
			break;
		if (n == 0 && !*prefix)
			text = one;
		else if (n == 0)
			text = arena_printf(s->ctx.arena, "%s%s", prefix,
					    shell_quoted(s->ctx.arena, one));
		else
			text = arena_printf(s->ctx.arena, "%s %s",
					    n == 1 && !*prefix
						    ? shell_quoted(s->ctx.arena, text)
						    : text,
					    shell_quoted(s->ctx.arena, one));
		n++;
	}
	if (text)
		judge_part(s, NULL, text, strlen(text));
}

void judge_calls(struct scene *s, const struct doc_inner *in, const char *code)
{
	const char *cwd = s->ctx.cwd;
	uint32_t i;

	/* Behind a chdir the current directory is not known. */
	if (strstr(code, "chdir"))
		s->ctx.cwd = NULL;
	for (i = 0; i < in->calls_count; i++) {
		const char *spec = in->calls[i], *p = code;
		size_t n = strcspn(spec, "=");
		const char *name = arena_str(s->ctx.arena, spec, n);
		const char *prefix = spec[n] ? spec + n + 1 : "";

		while ((p = strstr(p, name)) != NULL && s->ctx.steps) {
			bool whole = !is_name(*name) ||
				     ((p == code || !is_name(p[-1])) && !is_name(p[n]));

			if (whole) {
				judge_defer(s);
				judge_arguments(s, *name == '`' ? p : p + n, prefix);
			}
			p += n;
		}
	}
	s->ctx.cwd = cwd;
}

/* May a command begin behind that character? */
static bool begins(char c)
{
	return isspace((unsigned char)c) || isdigit((unsigned char)c) ||
	       (c && strchr(":|;+%,$\"'", c));
}

void judge_lines(struct scene *s, const struct doc_inner *in, const struct cmd *c,
		 const char *text)
{
	const char *p = text;
	uint32_t i;

	for (; *p; p++) {
		if (p != text && !begins(p[-1]))
			continue;
		for (i = 0; i < in->escapes_count; i++) {
			size_t n = strlen(in->escapes[i]), len;

			if (strncmp(p, in->escapes[i], n) != 0 ||
			    (is_name(in->escapes[i][n - 1]) && is_name(p[n])))
				continue;
			len = strcspn(p + n, "\n");
			judge_part(s, c, p + n, len);
			p += n + len - 1;
			break;
		}
	}
	judge_calls(s, in, text);
}

/* The state in which an awk program is read, token by token. */
struct awk {
	struct scene *s;
	const char *p;
	const char *literal; /* the last token, if it was a string */
	bool operand;	     /* the last token was an operand, so a / divides */
	bool joined; /* there was an operand before the string, which is joined to it */
	bool print;  /* behind print, a > writes to a file */
};

static void awk_run(struct awk *a, const char *text)
{
	if (text)
		judge_part(a->s, NULL, text, strlen(text));
	else
		judge_defer(a->s);
}

/*
 * The string at @p, if it is the whole operand; NULL if something is joined to it on its
 * right.
 */
static const char *awk_constant(struct awk *a, const char *p)
{
	const char *end, *text;

	p += strspn(p, " \t");
	text = read_literal(a->s, p, &end);
	if (!text || *p != '"')
		return NULL;
	end += strspn(end, " \t");
	return !*end || strchr(";}\n),|", *end) ? text : NULL;
}

static void awk_redirect(struct awk *a)
{
	const char *p = a->p + strspn(a->p, ">"), *text = awk_constant(a, p);
	struct word w = { text ? text : "", text ? 0 : WORD_OPEN, NULL };

	judge_write(a->s, &w);
	a->p = p;
}

static void awk_pipe(struct awk *a)
{
	const char *p = a->p + 1;

	if (*p == '|') {
		a->p = p + 1;
		return;
	}
	p += *p == '&';
	p += strspn(p, " \t");
	if (strncmp(p, "getline", 7) == 0)
		awk_run(a, a->joined ? NULL : a->literal);
	else
		awk_run(a, awk_constant(a, p));
	a->p = p;
}

static void awk_word(struct awk *a)
{
	const char *p = a->p;
	size_t n = 0;

	while (is_name(p[n]))
		n++;
	a->p += n;
	a->operand = true;
	a->literal = NULL;
	if (n == 6 && strncmp(p, "system", n) == 0) {
		p += n + strspn(p + n, " \t");
		awk_run(a, *p == '(' ? awk_constant(a, p + 1) : NULL);
	} else if ((n == 5 && strncmp(p, "print", n) == 0) ||
		   (n == 6 && strncmp(p, "printf", n) == 0)) {
		a->print = true;
		a->operand = false;
	}
}

static void awk_regex(struct awk *a)
{
	for (a->p++; *a->p && *a->p != '/' && *a->p != '\n'; a->p++)
		a->p += *a->p == '\\' && a->p[1];
	a->p += *a->p == '/';
	a->operand = true;
}

static void judge_awk(struct scene *s, const char *text)
{
	struct awk a = { .s = s, .p = text };
	int depth = 0;

	while (*a.p && s->ctx.steps) {
		bool was = a.operand;
		char c = *a.p;

		if (c == '"') {
			a.literal = read_literal(s, a.p, &a.p);
			a.joined = was;
			a.operand = true;
			if (!a.literal)
				return;
		} else if (c == '/' && !was) {
			awk_regex(&a);
		} else if (c == '#') {
			a.p += strcspn(a.p, "\n");
		} else if (c == '@') {
			/*
			 * @load, @include, and a function that is called by the value of
			 * a variable.
			 */
			judge_defer(s);
			a.p++;
		} else if (c == '|') {
			awk_pipe(&a);
			a.operand = false;
		} else if (c == '>' && a.print && depth == 0) {
			awk_redirect(&a);
			a.operand = false;
		} else if (is_name(c)) {
			awk_word(&a);
		} else {
			depth += c == '(';
			depth -= c == ')' && depth;
			a.print &= !strchr(";}\n", c);
			if (!isblank((unsigned char)c))
				a.literal = NULL;
			if (!isblank((unsigned char)c))
				a.operand = c == ')' || c == ']' || c == CODE_GAP ||
					    c == '$';
			a.p++;
		}
	}
}

/* The position behind a part of s/…/…/ that ends with @delim; NULL if it has no end. */
static const char *sed_part(const char *p, char delim, bool regex)
{
	while (*p && *p != delim) {
		if (*p == '\\' && p[1]) {
			p += 2;
		} else if (regex && *p == '[' && delim != '[') {
			const char *q = p + 1 + (p[1] == '^');

			q += *q == ']';
			q += strcspn(q, "]\n");
			/* Without a closing bracket, the [ is an ordinary character. */
			p = *q == ']' ? q + 1 : p + 1;
		} else {
			p++;
		}
	}
	return *p ? p + 1 : NULL;
}

static const char *sed_address(const char *p)
{
	for (;;) {
		p += strspn(p, " \t\n;,!~+{}$0123456789");
		if (*p == CODE_GAP)
			p++;
		else if (*p == '/')
			p = sed_part(p + 1, '/', true);
		else if (*p == '\\' && p[1])
			p = sed_part(p + 2, p[1], true);
		else
			return p;
		if (!p)
			return NULL;
		p += strspn(p, "IM");
	}
}

/*
 * Reads s/…/…/flags from the delimiter on: the flag e runs the result, w writes it to a
 * file.
 */
static const char *sed_substitute(struct scene *s, const char *p)
{
	char delim = *p;
	const char *with, *flags;

	with = delim ? sed_part(p + 1, delim, true) : NULL;
	flags = with ? sed_part(with, delim, false) : NULL;
	if (!flags)
		return NULL;
	for (p = flags; *p && strchr("gpiImM0123456789ew", *p); p++) {
		if (*p == 'w')
			return p;
		if (*p != 'e')
			continue;
		judge_defer(s);
		judge_part(s, NULL, with, (size_t)(flags - 1 - with));
	}
	return p;
}

static void judge_sed(struct scene *s, const char *text)
{
	const char *p = text;

	while (p && *(p = sed_address(p) ? sed_address(p) : "") && s->ctx.steps) {
		char c = *p++;
		size_t n = strcspn(p, "\n");
		size_t blanks = strspn(p, " \t");

		if (c == 's') {
			p = sed_substitute(s, p);
			if (!p)
				return;
			if (*p != 'w')
				continue;
			c = *p++;
			n = strcspn(p, "\n");
			blanks = strspn(p, " \t");
		}
		switch (c) {
		case 'y':
			p = *p ? sed_part(p + 1, *p, false) : NULL;
			p = p ? sed_part(p, p[-1], false) : NULL;
			break;
		case 'e':
			if (n == blanks)
				judge_defer(s);
			else
				judge_part(s, NULL, p + blanks, n - blanks);
			p += n;
			break;
		case 'w':
		case 'W': {
			size_t known = strcspn(p + blanks, "\n\001");
			struct word w = { arena_str(s->ctx.arena, p + blanks, known),
					  p[blanks + known] == CODE_GAP ? WORD_OPEN : 0,
					  NULL };

			judge_write(s, &w);
			p += n;
			break;
		}
		case 'a':
		case 'i':
		case 'c':
			/* The text goes on behind a backslash at the end of a line. */
			while (p[n] && n && p[n - 1] == '\\')
				n += 1 + strcspn(p + n + 1, "\n");
			p += n;
			break;
		case 'r':
		case 'R':
		case '#':
			p += n;
			break;
		case 'b':
		case 't':
		case 'T':
		case ':':
			p += strcspn(p, ";}\n");
			break;
		default:
			break;
		}
	}
}

void judge_code(struct scene *s, const struct doc_inner *in, const char *code)
{
	if (in->reads == READS_AWK)
		judge_awk(s, code);
	else if (in->reads == READS_SED)
		judge_sed(s, code);
	else
		judge_calls(s, in, code);
}

const char *word_code(const struct word *w)
{
	return w->flags & WORD_OPEN && w->shape ? w->shape : w->s;
}
