/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/word.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/brace.h"
#include "shell/cwd.h"
#include "shell/declare.h"
#include "shell/tree.h"
#include "shell/walk.h"

/* So many bytes and words may come out of expansions. */
enum { MADE_MAX = 8 << 20 };

/* A word that is being put together. */
struct maker {
	struct shell *sh;
	struct words *out;
	struct word cur;
	char *text; /* the known beginning of cur */
	size_t len, cap;
	char *shape; /* all of cur, with CODE_GAP for each unknown part */
	size_t shape_len, shape_cap;
	bool begun;   /* there is a word, perhaps an empty one */
	bool split;   /* unquoted expansions are split */
	bool in_tree; /* the positions are those of the syntax tree */
	bool quiet;   /* parts that are not in the tree have been reported before */
};

static void put(struct maker *m, char c)
{
	m->begun = true;
	/* A text such as x=$x$x grows fast. */
	if (m->sh->ctx->made++ > MADE_MAX) {
		m->cur.flags |= WORD_OPEN;
		/* Once is enough: a verdict never becomes milder. */
		if (!m->sh->ctx->too_large)
			report_unknown(m->sh->ctx);
		m->sh->ctx->too_large = true;
		return;
	}
	*ARENA_PUSH(m->sh->ctx->arena, m->shape, m->shape_len, m->shape_cap) = c;
	if (m->cur.flags & WORD_OPEN)
		return;
	*ARENA_PUSH(m->sh->ctx->arena, m->text, m->len, m->cap) = c;
}

static void finish(struct maker *m)
{
	if (!m->begun)
		return;
	m->cur.s = arena_str(m->sh->ctx->arena, m->text ? m->text : "", m->len);
	m->cur.shape = m->cur.flags & WORD_OPEN
			       ? arena_str(m->sh->ctx->arena, m->shape, m->shape_len)
			       : NULL;
	m->sh->ctx->made += sizeof(m->cur);
	if (m->sh->ctx->made > MADE_MAX)
		report_unknown(m->sh->ctx);
	if (m->sh->ctx->made < 2 * MADE_MAX)
		*ARENA_PUSH(m->sh->ctx->arena, m->out->v, m->out->n,
			    m->out->cap) = m->cur;
	m->len = m->shape_len = 0;
	m->begun = false;
	memset(&m->cur, 0, sizeof(m->cur));
}

static void put_open(struct maker *m, bool quoted, const struct names *from)
{
	m->begun = true;
	m->cur.flags |= WORD_OPEN;
	*ARENA_PUSH(m->sh->ctx->arena, m->shape, m->shape_len, m->shape_cap) = CODE_GAP;
	if (!quoted && m->split)
		m->cur.flags |= WORD_SPLIT;
	if (from)
		m->cur.from = from;
}

/* Puts the value of a variable in the place of an expansion. */
static void put_value(struct maker *m, const struct word *w, bool quoted)
{
	const struct word *ifs = shell_get(m->sh, "IFS", 3);
	const char *sep = ifs ? ifs->s : " \t\n", *p;

	if (!quoted && m->split && ifs && ifs->flags & WORD_OPEN) {
		/* The separators of words are not known. */
		put_open(m, quoted, w->from);
		return;
	}
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

		/* The grammar may count leading blanks in. */
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

/* Puts the output of $(…) or `…`. Returns the position behind it. */
static size_t put_output(struct maker *m, size_t off, size_t end, bool quoted)
{
	TSNode n = node_at(m, off, "command_substitution");
	struct done done = { 0 };
	struct word w = { 0 };
	size_t len;

	if (ts_node_is_null(n)) {
		if (!m->quiet)
			report_unknown(m->sh->ctx);
		put_open(m, quoted, NULL);
		return end;
	}
	shell_sub(m->sh, n, NULL, &done);
	if (done.text) {
		len = strlen(done.text);
		while (len && done.text[len - 1] == '\n')
			len--;
		w.s = arena_str(m->sh->ctx->arena, done.text, len);
		put_value(m, &w, quoted);
	} else {
		put_open(m, quoted, done.names);
	}
	return ts_node_end_byte(n);
}

static size_t put_file(struct maker *m, size_t off, size_t end)
{
	TSNode n = node_at(m, off, "process_substitution");
	/* The input of >(…) is whatever the command writes to the file, so it is not known. */
	const struct flow in = { .open = m->sh->src[off] == '>' };
	struct done done = { 0 };

	if (ts_node_is_null(n)) {
		if (!m->quiet)
			report_unknown(m->sh->ctx);
		put_open(m, true, NULL);
		return end;
	}
	shell_sub(m->sh, n, in.open ? &in : NULL, &done);
	m->begun = true;
	m->cur.flags |= WORD_FILE;
	m->cur.from = done.names;
	return ts_node_end_byte(n);
}

/* Puts all parameters as one word: "$*", and $* or $@ where words are not split. */
static void put_joined(struct maker *m)
{
	const struct shell *sh = m->sh;
	const struct word *ifs = shell_get(sh, "IFS", 3);
	size_t i;

	for (i = 0; i < sh->nargs; i++) {
		if (i && ifs && ifs->flags & WORD_OPEN)
			put_open(m, true, NULL);
		else if (i && (!ifs || ifs->s[0]))
			put(m, ifs ? ifs->s[0] : ' ');
		put_value(m, &sh->args[i], true);
	}
	m->begun = true;
}

static void put_variable(struct maker *m, const char *name, size_t len, bool quoted)
{
	const struct shell *sh = m->sh;
	const struct word *w;
	const char *cwd = NULL;
	size_t i;

	if (len == 1 && (*name == '@' || *name == '*') && sh->args &&
	    (!m->split || (*name == '*' && quoted))) {
		put_joined(m);
		return;
	}
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
		cwd = cwd_known(sh->ctx, sh->ctx->cwd);
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

/* ${!x} and ${x@P} evaluate the value of x, which may hold a $(…). */
static void judge_indirect(struct shell *sh, const char *src, size_t size, size_t len)
{
	const char *end = src + size;

	if (src[2] == '!' && size > 4 && !memchr("*@", end[-2], 2) &&
	    !(end[-2] == ']' && memchr("*@", end[-3], 2)))
		report_unknown(sh->ctx);
	if (size > 2 + len && memmem(src + 2 + len, size - 2 - len, "@P", 2))
		report_unknown(sh->ctx);
}

/*
 * Puts ${…}. The value is known for a plain name, and for a name with a default that is
 * not needed.
 */
static size_t put_braces(struct maker *m, size_t off, size_t end, bool quoted)
{
	const char *src = m->sh->src + off;
	TSNode n = node_at(m, off, "expansion");
	size_t len = name_len(src + 2), stop;
	const struct word *w;
	struct done done = { 0 };
	bool known;

	if (ts_node_is_null(n)) {
		const char *close = memchr(src, '}', end - off);

		stop = close ? (size_t)(close - m->sh->src) + 1 : end;
	} else {
		stop = ts_node_end_byte(n);
		shell_children(m->sh, n, NULL, &done);
	}
	w = len ? shell_get(m->sh, src + 2, len) : NULL;
	known = w && w->s[0] && !(w->flags & WORD_OPEN);
	if (len && src[2 + len] == '}')
		put_variable(m, src + 2, len, quoted);
	else if (known && (src[2 + len] == '-' || strncmp(src + 2 + len, ":-", 2) == 0 ||
			   src[2 + len] == '=' || strncmp(src + 2 + len, ":=", 2) == 0))
		put_value(m, w, quoted);
	else
		put_open(m, quoted, NULL);
	if (!known && len &&
	    (src[2 + len] == '=' || strncmp(src + 2 + len, ":=", 2) == 0))
		shell_set(m->sh, src + 2, len, (struct word){ "", WORD_OPEN, NULL });
	judge_indirect(m->sh, src, stop - off, len);
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
			walk_arithmetic(m->sh, src, ts_node_end_byte(n) - off);
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

/* Puts a code point in UTF-8. */
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

/* Puts a $'…' from behind its opening quote. */
static size_t put_ansi(struct maker *m, size_t off, size_t end)
{
	static const char names[] = "abefnrtvE", values[] = "\a\b\033\f\n\r\t\v\033";
	const char *p = m->sh->src + off, *stop = m->sh->src + end, *k;
	bool ended = false;
	int c;

	m->begun = true;
	while (p < stop && *p != '\'') {
		if (ended) {
			p += 1 + (*p == '\\' && p + 1 < stop);
			continue;
		}
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
			/* The shell drops the text behind a NUL. */
			ended = c == 0;
			if (c > 0 && kind == 'x')
				put(m, (char)c);
			else if (c > 0)
				put_point(m, c);
		} else if (*p >= '0' && *p <= '7') {
			c = from_digits(&p, stop, 8, 3) & 0xff;
			ended = c == 0;
			if (c > 0)
				put(m, (char)c);
		} else if (*p == 'c' && p + 1 < stop) {
			c = (unsigned char)p[1] & 0x1f;
			ended = c == 0;
			if (c > 0)
				put(m, (char)c);
			p += 2;
		} else {
			put(m, *p++);
		}
	}
	return (size_t)(p - m->sh->src) + (p < stop);
}

/* Puts the inside of double quotes or of a heredoc (@quote 0), up to the closing quote. */
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
	const struct word *home = shell_get(m->sh, "HOME", 4);
	const char *src = m->sh->src;
	size_t n = 0;

	while (off + 1 + n < end && (isalnum((unsigned char)src[off + 1 + n]) ||
				     strchr("_-.", src[off + 1 + n])))
		n++;
	if (!n && off + 1 < end && src[off + 1] == '+')
		n = 1;
	if (off + 1 + n < end && !strchr("/:", src[off + 1 + n])) {
		put(m, '~');
		return off + 1;
	}
	if (n == 1 && src[off + 1] == '+')
		put_variable(m, "PWD", 3, true);
	else if (!n && home)
		put_value(m, home, true);
	else if (!n || strspn(src + off + 1, "0123456789+-"))
		put_open(m, true,
			 NULL); /* ~- and ~N: directories in which the shell has been */
	else if (n == 4 && memcmp(src + off + 1, "root", 4) == 0)
		put_value(m, &(struct word){ "/root", 0, NULL }, true);
	else
		put_value(m,
			  &(struct word){ arena_printf(m->sh->ctx->arena, "/home/%.*s",
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
			/* Where the grammar has failed, several words may look like one. */
			if (isspace((unsigned char)c)) {
				report_unknown(m->sh->ctx);
				finish(m);
				off++;
				continue;
			}
			if (strchr("*?[", c) || (d == '(' && strchr("@!+", c)))
				m->cur.flags |= WORD_GLOB;
			put(m, c);
			off++;
		}
	}
}

/* A word with braces, and how many choices were made in it before. */
struct braced {
	const char *s;
	size_t len;
	unsigned depth;
};

static void put_braced(struct maker *like, const struct braced *w);

/* Puts a word that braces make: @choice, of @n bytes, takes the place of @b. */
static void put_choice(struct maker *like, const struct braced *w, const struct braces *b,
		       const char *choice, size_t n)
{
	const char *s = arena_printf(like->sh->ctx->arena, "%.*s%.*s%.*s", (int)b->open,
				     w->s, (int)n, choice, (int)(w->len - b->close - 1),
				     w->s + b->close + 1);
	const struct braced one = { s, strlen(s), w->depth + 1 };

	put_braced(like, &one);
}

/* {1..3}, {a..c}. False: the braces are no range and stand for themselves. */
static bool put_range(struct maker *like, const struct braced *w, const struct braces *b)
{
	const char *in = arena_str(like->sh->ctx->arena, w->s + b->open + 1,
				   b->close - b->open - 1);
	long from, to, step = 1, i;
	char x, y, rest, choice[24];
	bool letters = false;

	if (sscanf(in, "%ld..%ld%c", &from, &to, &rest) != 2 &&
	    sscanf(in, "%ld..%ld..%ld%c", &from, &to, &step, &rest) != 3) {
		if (sscanf(in, "%c..%c%c", &x, &y, &rest) != 2)
			return false;
		letters = true;
		from = (unsigned char)x;
		to = (unsigned char)y;
	}
	if (labs(to / 2 - from / 2) > LOOP_MAX || (step != 1 && step != -1)) {
		put_open(like, false, NULL);
		finish(like);
		return true;
	}
	for (i = from;; i += from < to ? 1 : -1) {
		if (letters)
			snprintf(choice, sizeof(choice), "%c", (char)i);
		else
			snprintf(choice, sizeof(choice), "%ld", i);
		put_choice(like, w, b, choice, strlen(choice));
		if (i == to)
			return true;
	}
}

/* {a,b}c becomes ac bc. The parts are not in the tree. */
static void put_braced(struct maker *like, const struct braced *w)
{
	const char *s = w->s;
	size_t len = w->len;
	struct shell part = *like->sh;
	struct maker m = { .sh = &part, .out = like->out, .split = true, .quiet = true };
	size_t from, i, k, level = 0;
	struct braces b;
	bool found;

	if (w->depth > 6 || like->out->n > 256) {
		put_open(&m, false, NULL);
		finish(&m);
		return;
	}
	found = find_braces(s, len, &b);
	if (found && b.range && put_range(like, w, &b))
		return;
	if (!found || b.range) {
		part.src = arena_str(like->sh->ctx->arena, s, len);
		put_span(&m, 0, len);
		finish(&m);
		return;
	}
	for (i = from = b.open + 1; i <= b.close; i++) {
		k = i < b.close ? skip_quoted(s, i, b.close) : i;
		if (k != i) {
			i = k - 1;
			continue;
		}
		level += s[i] == '{';
		level -= s[i] == '}' && i < b.close;
		if ((s[i] == ',' && !level) || i == b.close) {
			put_choice(like, w, &b, s + from, i - from);
			from = i + 1;
		}
	}
}

void words_add(struct shell *sh, size_t from, size_t to, struct words *out)
{
	struct maker m = { .sh = sh, .out = out, .split = true, .in_tree = true };
	struct words once = { 0 };
	struct braces b;

	if (find_braces(sh->src + from, to - from, &b)) {
		/* Substitutions in the word run once, whatever the braces make of it. */
		m.out = &once;
		put_span(&m, from, to);
		m = (struct maker){ .sh = sh, .out = out, .split = true };
		put_braced(&m, &(struct braced){ sh->src + from, to - from, 0 });
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
