/* SPDX-License-Identifier: Apache-2.0 */
/* Redirections: the input they give, the files they write to, and the words behind them. */
#include "shell/redirect.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "shell/tree.h"
#include "shell/walk.h"
#include "shell/word.h"

/* The word behind the operator. Children that touch each other are one word. */
static struct word redirect_target(struct shell *sh, TSNode n, char *op, size_t size)
{
	uint32_t count = ts_node_child_count(n), i;
	size_t from = 0, to = 0;

	op[0] = 0;
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_child(n, i);

		if (node_is(c, "file_descriptor") || (!op[0] && node_is(c, "ERROR")))
			continue;
		if (!op[0] && !ts_node_is_named(c)) {
			from = ts_node_start_byte(c);
			/*
			 * In some places the grammar does not know <<< and reads it as <
			 * behind <<.
			 */
			snprintf(op, size, "%s%s", ts_node_type(c),
				 from > 1 && memcmp(sh->src + from - 2, "<<", 2) == 0
					 ? "<<"
					 : "");
			continue;
		}
		if (!to)
			from = ts_node_start_byte(c);
		else if (!words_touch(sh->src, to, ts_node_start_byte(c)))
			break;
		to = ts_node_end_byte(c);
	}
	return word_value(sh, from, to);
}

/* Makes the text of a heredoc the standard input. */
static void walk_heredoc(struct shell *sh, TSNode n, struct flow *in)
{
	uint32_t count = ts_node_child_count(n), i;
	bool quoted = false, tabs = false;
	size_t from, to;
	struct word w;
	char *p, *q;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_child(n, i);

		from = ts_node_start_byte(c);
		to = ts_node_end_byte(c);
		if (node_is(c, "<<-"))
			tabs = true;
		if (node_is(c, "heredoc_start"))
			quoted = strcspn(sh->src + from, "'\"\\") < to - from;
		if (!node_is(c, "heredoc_body"))
			continue;
		if (quoted)
			w = (struct word){ arena_str(sh->ctx->arena, sh->src + from,
						     to - from),
					   0, NULL };
		else
			w = word_body(sh, from, to);
		in->given = true;
		in->from = w.from;
		in->open = w.flags & WORD_OPEN;
		in->text = NULL;
		if (in->open)
			continue;
		in->text = p = q = arena_str(sh->ctx->arena, w.s, strlen(w.s));
		for (; tabs && *q; q++)
			if (*q != '\t' ||
			    (q > in->text && q[-1] != '\n' && q[-1] != '\t'))
				*p++ = *q;
		if (tabs)
			*p = 0;
	}
}

/* Does the redirection set another descriptor than the standard input? */
static bool is_other_input(const struct shell *sh, TSNode n)
{
	TSNode fd = ts_node_child(n, 0);
	size_t from = ts_node_start_byte(n);

	if (!ts_node_is_null(fd) && node_is(fd, "file_descriptor"))
		return ts_node_end_byte(fd) - from != 1 || sh->src[from] != '0';
	/* {name}<file */
	return from && sh->src[from - 1] == '}';
}

void walk_redirect(struct shell *sh, TSNode n, struct flow *in)
{
	struct flow other = { 0 };
	struct word target;
	char op[8];

	if (is_other_input(sh, n))
		in = &other;
	if (node_is(n, "heredoc_redirect")) {
		walk_heredoc(sh, n, in);
		return;
	}
	target = redirect_target(sh, n, op, sizeof(op));
	if (node_is(n, "herestring_redirect") || strcmp(op, "<<<") == 0) {
		in->given = true;
		in->from = target.from;
		in->open = target.flags & WORD_OPEN;
		in->text = in->open ? NULL : target.s;
	} else if (strcmp(op, "<") == 0 || strcmp(op, "<&") == 0) {
		in->given = true;
		in->from = target.from;
		in->open = true;
		in->text = NULL;
	} else if (strcmp(op, ">&") != 0 || strspn(target.s, "0123456789-") == 0) {
		report_write(sh->ctx, &target);
	}
}

static bool is_literal(TSNode n)
{
	static const char *const types[] = {
		"word",
		"string",
		"raw_string",
		"ansi_c_string",
		"translated_string",
		"number",
		"expansion",
		"simple_expansion",
		"command_substitution",
		"concatenation",
		"arithmetic_expansion",
		"process_substitution",
		"brace_expression",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (node_is(n, types[i]))
			return true;
	return false;
}

/* A list of spans that grows at its end. */
struct spans {
	struct shell *sh;
	const struct span *first;
	struct span *last;
};

static void add_span(struct spans *s, TSNode n)
{
	size_t from = ts_node_start_byte(n), to = ts_node_end_byte(n);
	struct span *one;

	if (s->last && words_touch(s->sh->src, s->last->to, from)) {
		s->last->to = to;
		return;
	}
	one = arena_take(s->sh->ctx->arena, sizeof(*one));
	one->from = from;
	one->to = to;
	if (s->last)
		s->last->next = one;
	else
		s->first = one;
	s->last = one;
}

/*
 * Finds the words of the command behind a redirection. The grammar gives all words up to
 * the end of the command to the last redirection; the shell gives the redirection only
 * the first of them, and the rest to the command.
 */
static void add_spans(struct spans *s, TSNode n)
{
	bool here = node_is(n, "heredoc_redirect"), op = false;
	uint32_t count = ts_node_child_count(n), i;
	size_t target = 0;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_child(n, i);

		if (node_is(c, "file_descriptor") || node_is(c, "comment") ||
		    (!op && node_is(c, "ERROR")))
			continue;
		if (is_redirect(c))
			add_spans(s, c);
		else if (here && is_literal(c))
			add_span(s, c);
		if (here)
			continue;
		if (!op && !ts_node_is_named(c)) {
			op = true;
			continue;
		}
		if (!target || words_touch(s->sh->src, target, ts_node_start_byte(c)))
			target = ts_node_end_byte(c);
		else if (node_is(c, "ERROR"))
			report_unknown(s->sh->ctx);
		else
			add_span(s, c);
	}
}

/* Walks over the part of a line behind a heredoc: a pipe, a list. */
static void walk_behind_heredoc(struct shell *sh, TSNode n, struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);
		struct flow f = { .from = out->names,
				  .text = out->text,
				  .open = !out->text };

		if (node_is(c, "heredoc_redirect"))
			walk_behind_heredoc(sh, c, out);
		else if (node_is(c, "pipeline"))
			walk_pipe(sh, c, &f, NULL, out);
		else if (!is_redirect(c) && !is_literal(c) &&
			 strncmp(ts_node_type(c), "heredoc_", 8) != 0 &&
			 !node_is(c, "file_descriptor"))
			shell_walk(sh, c, NULL, out);
	}
}

/* Applies redirections in their order, including those behind a heredoc. */
static void walk_redirects(struct shell *sh, TSNode n, bool late, struct flow *f)
{
	uint32_t count = ts_node_named_child_count(n), i;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (!is_redirect(c) || (late && node_is(c, "file_redirect")))
			continue;
		walk_redirect(sh, c, f);
		if (node_is(c, "heredoc_redirect"))
			walk_redirects(sh, c, false, f);
	}
}

void walk_redirected(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;
	struct flow f = in ? *in : (struct flow){ 0 }, first = f;
	struct spans spans = { .sh = sh };
	TSNode body = { 0 };
	bool late; /* in cd x && y > z, the file is in x */

	/* Words behind a redirection of the surrounding command come last. */
	f.given = false;
	first.words = NULL;
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (is_redirect(c))
			add_spans(&spans, c);
		else if (ts_node_is_null(body))
			body = c;
	}
	if (spans.last)
		spans.last->next = f.words;
	else
		spans.first = f.words;
	f.words = spans.first;
	late = !ts_node_is_null(body) && node_is(body, "list");
	walk_redirects(sh, n, late, &f);
	if (!ts_node_is_null(body))
		walk_last(sh, body, &first, &f, out);
	else if (f.words)
		walk_command(sh, n, &f, out);
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (node_is(c, "heredoc_redirect"))
			walk_behind_heredoc(sh, c, out);
		else if (late && node_is(c, "file_redirect"))
			walk_redirect(sh, c, &f);
	}
}
