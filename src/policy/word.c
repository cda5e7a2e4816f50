/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "policy/shell.h"

/* One word in the making. */
struct maker {
	struct shell *sh;
	struct words *out;
	struct word cur;
	char *text; /* of cur */
	size_t len, cap;
	bool begun;   /* there is a word, maybe an empty one */
	bool split;   /* unquoted expansions are split */
	bool in_tree; /* the text is that of the tree */
};

static void put(struct maker *m, char c)
{
	m->begun = true;
	if (m->cur.flags & WORD_OPEN)
		return;
	*ARENA_PUSH(m->sh->s->arena, m->text, m->len, m->cap) = c;
}

static void finish(struct maker *m)
{
	if (!m->begun)
		return;
	m->cur.s = arena_str(m->sh->s->arena, m->text ? m->text : "", m->len);
	*ARENA_PUSH(m->sh->s->arena, m->out->v, m->out->n, m->out->cap) = m->cur;
	m->len = 0;
	m->begun = false;
	memset(&m->cur, 0, sizeof(m->cur));
}

static void put_open(struct maker *m, bool quoted, const struct names *from)
{
	m->begun = true;
	m->cur.flags |= WORD_OPEN;
	if (!quoted && m->split)
		m->cur.flags |= WORD_SPLIT;
	if (from)
		m->cur.from = from;
}

/* A known value in place of an expansion. */
static void put_value(struct maker *m, const struct word *w, bool quoted)
{
	const struct word *ifs = shell_get(m->sh, "IFS", 3);
	const char *sep = ifs && !(ifs->flags & WORD_OPEN) ? ifs->s : " \t\n", *p;

	for (p = w->s; *p; p++) {
		if (!quoted && m->split && strchr(sep, *p)) {
			finish(m);
			continue;
		}
		if (!quoted && strchr("*?[", *p))
			m->cur.flags |= WORD_GLOB;
		put(m, *p);
	}
	if (quoted)
		m->begun = true;
	if (w->flags & WORD_OPEN)
		put_open(m, quoted, w->from);
	if (w->flags & WORD_FILE)
		m->cur.flags |= WORD_FILE;
}

/* The node of @type that begins at @off; a null node if there is none. */
static TSNode node_at(struct maker *m, size_t off, const char *type)
{
	TSNode n = { 0 }, root;

	if (!m->in_tree)
		return n;
	root = ts_tree_root_node(m->sh->tree);
	n = ts_node_descendant_for_byte_range(root, (uint32_t)off, (uint32_t)off + 1);
	while (!ts_node_is_null(n)) {
		size_t a = ts_node_start_byte(n);

		/* Blanks may have been counted in. */
		while (a < off && isspace((unsigned char)m->sh->src[a]))
			a++;
		if (a != off)
			break;
		if (node_is(n, type))
			return n;
		n = ts_node_parent(n);
	}
	return (TSNode){ 0 };
}

/* $(…), `…`: what it writes. Returns the position behind it. */
static size_t put_output(struct maker *m, size_t off, size_t end, bool quoted)
{
	TSNode n = node_at(m, off, "command_substitution");
	struct done done = { 0 };
	struct word w = { 0 };
	size_t len;

	if (ts_node_is_null(n)) {
		judge_defer(m->sh->s);
		put_open(m, quoted, NULL);
		return end;
	}
	shell_sub(m->sh, n, NULL, &done);
	if (done.text) {
		len = strlen(done.text);
		while (len && done.text[len - 1] == '\n')
			len--;
		w.s = arena_str(m->sh->s->arena, done.text, len);
		put_value(m, &w, quoted);
	} else {
		put_open(m, quoted, done.names);
	}
	return ts_node_end_byte(n);
}

static size_t put_file(struct maker *m, size_t off, size_t end)
{
	TSNode n = node_at(m, off, "process_substitution");
	struct done done = { 0 };

	if (ts_node_is_null(n)) {
		judge_defer(m->sh->s);
		put_open(m, true, NULL);
		return end;
	}
	shell_sub(m->sh, n, NULL, &done);
	m->begun = true;
	m->cur.flags |= WORD_FILE;
	m->cur.from = done.names;
	return ts_node_end_byte(n);
}

static void put_variable(struct maker *m, const char *name, size_t len, bool quoted)
{
	const struct shell *sh = m->sh;
	const struct word *w;
	const char *cwd = NULL;
	size_t i;

	if (len == 1 && (*name == '@' || *name == '*') && sh->args) {
		for (i = 0; i < sh->nargs; i++) {
			if (i)
				finish(m);
			put_value(m, &sh->args[i], quoted);
		}
		return;
	}
	if (len == 1 && *name >= '1' && *name <= '9' && sh->args) {
		i = (size_t)(*name - '1');
		if (i < sh->nargs)
			put_value(m, &sh->args[i], quoted);
		else if (quoted)
			m->begun = true;
		return;
	}
	w = shell_get(sh, name, len);
	if (!w && len == 3 && memcmp(name, "PWD", 3) == 0)
		cwd = scene_cwd(sh->s, sh->s->cwd);
	if (w)
		put_value(m, w, quoted);
	else if (cwd)
		put_value(m, &(struct word){ cwd, 0, NULL }, quoted);
	else
		put_open(m, quoted, NULL);
}

static size_t name_len(const char *s)
{
	size_t n = 0;

	if (isalpha((unsigned char)*s) || *s == '_')
		while (isalnum((unsigned char)s[n]) || s[n] == '_')
			n++;
	else if (isdigit((unsigned char)*s) || (*s && strchr("@*#?$!-", *s)))
		n = 1;
	return n;
}

/* ${…}: known if it is a plain name, or one with a default that is not needed. */
static size_t put_braces(struct maker *m, size_t off, size_t end, bool quoted)
{
	const char *src = m->sh->src + off;
	TSNode n = node_at(m, off, "expansion");
	size_t len = name_len(src + 2), stop;
	const struct word *w;
	struct done done = { 0 };

	if (ts_node_is_null(n)) {
		const char *close = memchr(src, '}', end - off);

		stop = close ? (size_t)(close - m->sh->src) + 1 : end;
	} else {
		stop = ts_node_end_byte(n);
		shell_children(m->sh, n, NULL, &done);
	}
	w = shell_get(m->sh, src + 2, len);
	if (len && src[2 + len] == '}')
		put_variable(m, src + 2, len, quoted);
	else if (len && w && w->s[0] && !(w->flags & WORD_OPEN) &&
		 (src[2 + len] == '-' || strncmp(src + 2 + len, ":-", 2) == 0 ||
		  strncmp(src + 2 + len, ":=", 2) == 0))
		put_value(m, w, quoted);
	else
		put_open(m, quoted, NULL);
	return stop;
}

static size_t put_dollar(struct maker *m, size_t off, size_t end, bool quoted)
{
	const char *src = m->sh->src + off;
	struct done done = { 0 };
	size_t len;
	TSNode n;

	if (end - off > 2 && src[1] == '(' && src[2] == '(') {
		n = node_at(m, off, "arithmetic_expansion");
		if (!ts_node_is_null(n)) {
			shell_children(m->sh, n, NULL, &done);
			put_open(m, quoted, NULL);
			return ts_node_end_byte(n);
		}
	}
	if (end - off > 1 && src[1] == '(')
		return put_output(m, off, end, quoted);
	if (end - off > 1 && src[1] == '{')
		return put_braces(m, off, end, quoted);
	len = end - off > 1 ? name_len(src + 1) : 0;
	if (!len || off + 1 + len > end) {
		put(m, '$');
		return off + 1;
	}
	put_variable(m, src + 1, len, quoted);
	return off + 1 + len;
}

static int from_digits(const char **p, const char *end, int base, int most)
{
	int v = 0, n = 0;

	for (; n < most && *p < end; n++, (*p)++) {
		int c = (unsigned char)**p;
		int d = isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : 99;

		if (d >= base)
			break;
		v = v * base + d;
	}
	return n ? v : -1;
}

/* A code point in UTF-8. */
static void put_point(struct maker *m, int c)
{
	if (c < 0x80) {
		put(m, (char)c);
	} else if (c < 0x800) {
		put(m, (char)(0xc0 | (c >> 6)));
		put(m, (char)(0x80 | (c & 0x3f)));
	} else {
		put(m, (char)(0xe0 | ((c >> 12) & 0xf)));
		put(m, (char)(0x80 | ((c >> 6) & 0x3f)));
		put(m, (char)(0x80 | (c & 0x3f)));
	}
}

/* $'…' from behind its opening quote. */
static size_t put_ansi(struct maker *m, size_t off, size_t end)
{
	static const char names[] = "abefnrtvE", values[] = "\a\b\033\f\n\r\t\v\033";
	const char *p = m->sh->src + off, *stop = m->sh->src + end, *k;
	int c;

	m->begun = true;
	while (p < stop && *p != '\'') {
		if (*p != '\\' || p + 1 >= stop) {
			put(m, *p++);
			continue;
		}
		p++;
		k = strchr(names, *p);
		if (k) {
			put(m, values[k - names]);
			p++;
		} else if (*p == 'x' || *p == 'u' || *p == 'U') {
			char kind = *p++;

			c = from_digits(&p, stop, 16,
					kind == 'x'   ? 2
					: kind == 'u' ? 4
						      : 8);
			if (c > 0 && kind == 'x')
				put(m, (char)c);
			else if (c > 0)
				put_point(m, c);
		} else if (*p >= '0' && *p <= '7') {
			c = from_digits(&p, stop, 8, 3);
			if (c > 0)
				put(m, (char)c);
		} else {
			put(m, *p++);
		}
	}
	return (size_t)(p - m->sh->src) + (p < stop);
}

/* The inside of double quotes or a heredoc (@quote 0), up to the closing quote. */
static size_t put_quoted(struct maker *m, size_t off, size_t end, char quote)
{
	const char *src = m->sh->src;

	m->begun = true;
	while (off < end && (!quote || src[off] != quote)) {
		if (src[off] == '\\' && off + 1 < end &&
		    strchr(quote ? "$`\"\\\n" : "$`\\\n", src[off + 1])) {
			if (src[off + 1] != '\n')
				put(m, src[off + 1]);
			off += 2;
		} else if (src[off] == '$') {
			off = put_dollar(m, off, end, true);
		} else if (src[off] == '`') {
			off = put_output(m, off, end, true);
		} else {
			put(m, src[off++]);
		}
	}
	return off < end ? off + 1 : end;
}

static size_t put_tilde(struct maker *m, size_t off, size_t end)
{
	const char *src = m->sh->src, *home = m->sh->s->home;
	size_t n = 0;

	while (off + 1 + n < end && (isalnum((unsigned char)src[off + 1 + n]) ||
				     strchr("_-.", src[off + 1 + n])))
		n++;
	if (off + 1 + n < end && !strchr("/:", src[off + 1 + n])) {
		put(m, '~');
		return off + 1;
	}
	if (!n && home)
		put_value(m, &(struct word){ home, 0, NULL }, true);
	else if (!n)
		put_open(m, true, NULL);
	else if (n == 4 && memcmp(src + off + 1, "root", 4) == 0)
		put_value(m, &(struct word){ "/root", 0, NULL }, true);
	else
		put_value(m,
			  &(struct word){ arena_printf(m->sh->s->arena, "/home/%.*s",
						       (int)n, src + off + 1),
					  0, NULL },
			  true);
	return off + 1 + n;
}

static size_t put_single(struct maker *m, size_t off, size_t end)
{
	m->begun = true;
	while (off < end && m->sh->src[off] != '\'')
		put(m, m->sh->src[off++]);
	return off + 1;
}

static void put_span(struct maker *m, size_t off, size_t end)
{
	const char *src = m->sh->src;
	size_t begin = off;

	while (off < end) {
		char c = src[off], d = off + 1 < end ? src[off + 1] : 0;

		if (c == '\\') {
			if (d && d != '\n')
				put(m, d);
			off += 2;
		} else if (c == '\'') {
			off = put_single(m, off + 1, end);
		} else if (c == '"') {
			off = put_quoted(m, off + 1, end, '"');
		} else if (c == '$' && d == '\'') {
			off = put_ansi(m, off + 2, end);
		} else if (c == '$' && d == '"') {
			off = put_quoted(m, off + 2, end, '"');
		} else if (c == '$') {
			off = put_dollar(m, off, end, false);
		} else if (c == '`') {
			off = put_output(m, off, end, false);
		} else if ((c == '<' || c == '>') && d == '(') {
			off = put_file(m, off, end);
		} else if (c == '~' && (off == begin || src[off - 1] == '=')) {
			off = put_tilde(m, off, end);
		} else {
			if (strchr("*?[", c))
				m->cur.flags |= WORD_GLOB;
			put(m, c);
			off++;
		}
	}
}

/* The comma list in unquoted braces, if there is one: *open, *close around it. */
static bool find_braces(const char *s, size_t len, size_t *open, size_t *close)
{
	size_t i, depth = 0, begin = 0;
	bool comma = false;

	for (i = 0; i < len; i++) {
		if (strchr("'\"`$\\<>", s[i]))
			return false;
		if (s[i] == '{' && depth++ == 0) {
			begin = i;
			comma = false;
		} else if (s[i] == ',' && depth == 1) {
			comma = true;
		} else if (s[i] == '}' && depth && --depth == 0 && comma) {
			*open = begin;
			*close = i;
			return true;
		}
	}
	return false;
}

/* {a,b}c becomes ac bc. Only plain text: the parts are not in the tree. */
static void put_braced(struct shell *sh, const char *s, size_t len, struct words *out,
		       unsigned depth)
{
	struct shell part = *sh;
	struct maker m = { .sh = &part, .out = out, .split = true };
	size_t open, close, from, i, level = 0;

	if (depth > 6 || out->n > 256 || !find_braces(s, len, &open, &close)) {
		part.src = arena_str(sh->s->arena, s, len);
		put_span(&m, 0, len);
		finish(&m);
		return;
	}
	for (i = from = open + 1; i <= close; i++) {
		level += s[i] == '{';
		level -= s[i] == '}' && i < close;
		if ((s[i] == ',' && !level) || i == close) {
			const char *one = arena_printf(sh->s->arena, "%.*s%.*s%.*s",
						       (int)open, s, (int)(i - from),
						       s + from, (int)(len - close - 1),
						       s + close + 1);

			put_braced(sh, one, strlen(one), out, depth + 1);
			from = i + 1;
		}
	}
}

void words_add(struct shell *sh, size_t from, size_t to, struct words *out)
{
	struct maker m = { .sh = sh, .out = out, .split = true, .in_tree = true };
	size_t open, close;

	if (find_braces(sh->src + from, to - from, &open, &close)) {
		put_braced(sh, sh->src + from, to - from, out, 0);
		return;
	}
	put_span(&m, from, to);
	finish(&m);
}

static struct word first(struct words *w)
{
	return w->n ? w->v[0] : (struct word){ "", 0, NULL };
}

struct word word_value(struct shell *sh, size_t from, size_t to)
{
	struct words w = { 0 };
	struct maker m = { .sh = sh, .out = &w, .in_tree = true };

	put_span(&m, from, to);
	finish(&m);
	return first(&w);
}

struct word word_body(struct shell *sh, size_t from, size_t to)
{
	struct words w = { 0 };
	struct maker m = { .sh = sh, .out = &w, .in_tree = true };

	put_quoted(&m, from, to, 0);
	finish(&m);
	return first(&w);
}
