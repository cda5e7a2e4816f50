/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/shell.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

const TSLanguage *tree_sitter_bash(void);

/* Longer than that nobody waits for a verdict. */
enum { PARSE_MICROSECONDS = 500000 };

bool node_is(TSNode n, const char *type)
{
	return strcmp(ts_node_type(n), type) == 0;
}

const struct word *shell_get(const struct shell *sh, const char *name, size_t len)
{
	const struct var *v;

	for (v = sh->vars; v; v = v->next)
		if (strlen(v->name) == len && memcmp(v->name, name, len) == 0)
			return &v->value;
	return NULL;
}

void shell_set(struct shell *sh, const char *name, size_t len, struct word value)
{
	struct var *v = arena_take(sh->s->arena, sizeof(*v));

	v->name = arena_str(sh->s->arena, name, len);
	v->value = value;
	v->next = sh->vars;
	sh->vars = v;
}

static void set_known(struct shell *sh, const char *name, const char *value)
{
	shell_set(sh, name, strlen(name), (struct word){ value, 0, NULL });
}

void shell_forget(struct shell *sh)
{
	sh->vars = NULL;
	sh->args = NULL;
	sh->s->cwd = NULL;
}

struct state {
	const struct var *vars;
	const struct func *funcs;
	const struct word *args;
	size_t nargs;
	const char *cwd;
};

static struct state state_of(const struct shell *sh)
{
	return (struct state){ sh->vars, sh->funcs, sh->args, sh->nargs, sh->s->cwd };
}

static void state_back(struct shell *sh, const struct state *was)
{
	sh->vars = was->vars;
	sh->funcs = was->funcs;
	sh->args = was->args;
	sh->nargs = was->nargs;
	sh->s->cwd = was->cwd;
}

/* What may or may not have run: what it changed is not known any more. */
static void state_maybe(struct shell *sh, const struct state *was)
{
	static const struct word unknown = { "", WORD_OPEN, NULL };
	const struct var *now = sh->vars, *v;
	const char *cwd = sh->s->cwd;

	for (v = now; v && v != was->vars; v = v->next)
		;
	if (!v && was->vars) {
		shell_forget(sh);
		return;
	}
	sh->vars = was->vars;
	for (v = now; v != was->vars; v = v->next)
		shell_set(sh, v->name, strlen(v->name), unknown);
	if (!cwd || !was->cwd || strcmp(cwd, was->cwd) != 0)
		sh->s->cwd = NULL;
	if (sh->args != was->args)
		sh->args = NULL;
}

static void maybe_children(struct shell *sh, TSNode n, const struct flow *in,
			   struct done *out)
{
	struct state was = state_of(sh);

	shell_children(sh, n, in, out);
	state_maybe(sh, &was);
}

void shell_sub(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	struct state was = state_of(sh);

	shell_children(sh, n, in, out);
	state_back(sh, &was);
}

/* a | b | c, from the child @at on. @last: what the last one has besides the pipe. */
static void walk_pipe(struct shell *sh, TSNode n, const struct flow *in,
		      const struct flow *last, struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;
	struct flow flow = in ? *in : (struct flow){ 0 };

	sh->piped++;
	for (i = 0; i < count; i++) {
		struct state was = state_of(sh);
		struct done done = { 0 };
		TSNode child = ts_node_named_child(n, i);

		if (node_is(child, "comment"))
			continue;
		shell_walk(sh, child, last && i + 1 == count ? last : &flow, &done);
		state_back(sh, &was);
		if (i + 1 == count) {
			out->text = out->commands ? NULL : done.text;
			out->commands++;
		}
		/* All programs on the way have had a hand in it. */
		if (done.names) {
			const struct names *end = done.names;

			for (; end; end = end->next) {
				struct names *copy = arena_take(sh->s->arena,
								sizeof(*copy));

				copy->name = end->name;
				copy->next = flow.from;
				flow.from = copy;
			}
		}
		flow.text = done.text;
		flow.open = !done.text;
	}
	for (; flow.from; flow.from = flow.from->next) {
		struct names *copy = arena_take(sh->s->arena, sizeof(*copy));

		copy->name = flow.from->name;
		copy->next = out->names;
		out->names = copy;
	}
	sh->piped--;
}

static void walk_list(struct shell *sh, TSNode n, const struct flow *in,
		      const struct flow *last, struct done *out)
{
	uint32_t count = ts_node_child_count(n), i;
	bool other = false;

	for (i = 0; i < count; i++) {
		TSNode child = ts_node_child(n, i);
		const struct flow *f = last && i + 1 == count ? last : in;
		struct state was = state_of(sh);

		if (!ts_node_is_named(child)) {
			other = node_is(child, "||");
			continue;
		}
		shell_walk(sh, child, f, out);
		if (other)
			state_maybe(sh, &was);
	}
}

static void walk_assignment(struct shell *sh, TSNode n)
{
	TSNode name = ts_node_named_child(n, 0);
	size_t from = ts_node_start_byte(name), to = ts_node_end_byte(name);
	size_t at = to, end = ts_node_end_byte(n);
	const struct word *old = shell_get(sh, sh->src + from, to - from);
	struct done done = { 0 };
	struct word value;
	bool more = false;

	if (sh->src[at] == '+') {
		more = true;
		at++;
	}
	at += sh->src[at] == '=';
	if (!node_is(name, "variable_name") || (at < end && sh->src[at] == '(')) {
		shell_children(sh, n, NULL, &done);
		value = (struct word){ "", WORD_OPEN, NULL };
		to = from + strcspn(sh->src + from, "[=+");
	} else {
		value = word_value(sh, at, end);
	}
	if (more && old && !(old->flags & WORD_OPEN) && !(value.flags & WORD_OPEN))
		value.s = arena_printf(sh->s->arena, "%s%s", old->s, value.s);
	else if (more)
		value.flags |= WORD_OPEN;
	shell_set(sh, sh->src + from, to - from, value);
}

static bool is_redirect(TSNode n)
{
	return node_is(n, "file_redirect") || node_is(n, "heredoc_redirect") ||
	       node_is(n, "herestring_redirect");
}

/* The word behind the operator: touching children belong together. */
static struct word redirect_target(struct shell *sh, TSNode n, char *op, size_t size)
{
	uint32_t count = ts_node_child_count(n), i;
	size_t from = 0, to = 0;

	op[0] = 0;
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_child(n, i);

		if (node_is(c, "file_descriptor"))
			continue;
		if (!op[0] && !ts_node_is_named(c)) {
			snprintf(op, size, "%s", ts_node_type(c));
			continue;
		}
		if (!to)
			from = ts_node_start_byte(c);
		else if (ts_node_start_byte(c) != to)
			break;
		to = ts_node_end_byte(c);
	}
	return word_value(sh, from, to);
}

/* The text of a heredoc. */
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
			w = (struct word){ arena_str(sh->s->arena, sh->src + from,
						     to - from),
					   0, NULL };
		else
			w = word_body(sh, from, to);
		in->from = w.from;
		in->open = w.flags & WORD_OPEN;
		in->text = NULL;
		if (in->open)
			continue;
		in->text = p = q = arena_str(sh->s->arena, w.s, strlen(w.s));
		for (; tabs && *q; q++)
			if (*q != '\t' ||
			    (q > in->text && q[-1] != '\n' && q[-1] != '\t'))
				*p++ = *q;
		if (tabs)
			*p = 0;
	}
}

static void walk_redirect(struct shell *sh, TSNode n, struct flow *in)
{
	struct word target;
	char op[8];

	if (node_is(n, "heredoc_redirect")) {
		walk_heredoc(sh, n, in);
		return;
	}
	target = redirect_target(sh, n, op, sizeof(op));
	if (node_is(n, "herestring_redirect") || strcmp(op, "<<<") == 0) {
		in->from = target.from;
		in->open = target.flags & WORD_OPEN;
		in->text = in->open ? NULL : target.s;
	} else if (strcmp(op, "<") == 0 || strcmp(op, "<&") == 0) {
		in->from = target.from;
		in->open = true;
		in->text = NULL;
	} else if (strcmp(op, ">&") != 0 || strspn(target.s, "0123456789-") == 0) {
		judge_write(sh->s, &target);
	}
}

/* What follows a heredoc on its line: more redirections, a pipe, && and more. */
static void walk_behind_heredoc(struct shell *sh, TSNode n, struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);
		struct flow none = { 0 };

		if (node_is(c, "heredoc_start") || node_is(c, "heredoc_body") ||
		    node_is(c, "heredoc_end") || node_is(c, "file_descriptor")) {
			continue;
		} else if (node_is(c, "pipeline")) {
			struct flow f = { out->names, out->text, !out->text };

			walk_pipe(sh, c, &f, NULL, out);
		} else if (is_redirect(c)) {
			walk_redirect(sh, c, &none);
		} else {
			shell_walk(sh, c, NULL, out);
		}
	}
}

static void walk_redirected(struct shell *sh, TSNode n, const struct flow *in,
			    struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;
	struct flow f = in ? *in : (struct flow){ 0 };
	TSNode body = { 0 };
	bool late; /* cd x && y > z: the file is in x */

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (!is_redirect(c) && ts_node_is_null(body))
			body = c;
	}
	late = !ts_node_is_null(body) && node_is(body, "list");
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (is_redirect(c) && !(late && node_is(c, "file_redirect")))
			walk_redirect(sh, c, &f);
	}
	if (!ts_node_is_null(body)) {
		/* It belongs to the last command of what stands before it. */
		if (node_is(body, "pipeline"))
			walk_pipe(sh, body, in, f.text || f.from ? &f : NULL, out);
		else if (node_is(body, "list"))
			walk_list(sh, body, in, &f, out);
		else
			shell_walk(sh, body, &f, out);
	}
	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (node_is(c, "heredoc_redirect"))
			walk_behind_heredoc(sh, c, out);
		else if (late && node_is(c, "file_redirect"))
			walk_redirect(sh, c, &f);
	}
}

static void walk_command(struct shell *sh, TSNode n, const struct flow *in,
			 struct done *out)
{
	uint32_t count = ts_node_child_count(n), i;
	struct flow f = in ? *in : (struct flow){ 0 };
	struct words words = { 0 };
	struct cmd c = { 0 };
	size_t from = 0, to = 0;

	if (sh->s->nested == 1) {
		sh->s->from = ts_node_start_byte(n);
		sh->s->to = ts_node_end_byte(n);
	}
	for (i = 0; i < count; i++) {
		TSNode child = ts_node_child(n, i);

		if (node_is(child, "variable_assignment")) {
			struct state was = state_of(sh);

			/* For this command alone. */
			walk_assignment(sh, child);
			state_back(sh, &was);
			continue;
		}
		if (is_redirect(child)) {
			walk_redirect(sh, child, &f);
			continue;
		}
		if (node_is(child, "ERROR") || node_is(child, "comment")) {
			judge_defer(sh->s);
			continue;
		}
		if (to && ts_node_start_byte(child) != to) {
			words_add(sh, from, to, &words);
			to = 0;
		}
		if (!to)
			from = ts_node_start_byte(child);
		to = ts_node_end_byte(child);
	}
	if (to)
		words_add(sh, from, to, &words);
	c.words = words.v;
	c.n = words.n;
	c.from = f.from;
	c.input = f.text;
	c.input_open = f.open;
	if (sh->s->nested == 1) {
		sh->s->from = ts_node_start_byte(n);
		sh->s->to = ts_node_end_byte(n);
	}
	shell_command(sh, &c, out);
}

static void walk_for(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	uint32_t count = ts_node_child_count(n), i;
	struct state was = state_of(sh);
	struct words words = { 0 };
	TSNode name = { 0 }, body = { 0 };
	size_t from = 0, to = 0, k;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_child(n, i);

		if (node_is(c, "do_group") || node_is(c, "compound_statement")) {
			body = c;
		} else if (node_is(c, "variable_name") && ts_node_is_null(name)) {
			name = c;
		} else if (ts_node_is_named(c)) {
			if (to && ts_node_start_byte(c) != to) {
				words_add(sh, from, to, &words);
				to = 0;
			}
			from = to ? from : ts_node_start_byte(c);
			to = ts_node_end_byte(c);
		}
	}
	if (to)
		words_add(sh, from, to, &words);
	if (ts_node_is_null(name) || ts_node_is_null(body)) {
		judge_defer(sh->s);
		return;
	}
	from = ts_node_start_byte(name);
	to = ts_node_end_byte(name);
	if (!words.n || words.n > LOOP_MAX) {
		words.v = arena_take(sh->s->arena, sizeof(*words.v));
		words.v[0] = (struct word){ "", WORD_OPEN, NULL };
		words.n = 1;
	}
	for (k = 0; k < words.n && sh->s->steps; k++) {
		shell_set(sh, sh->src + from, to - from, words.v[k]);
		shell_children(sh, body, in, out);
	}
	state_maybe(sh, &was);
}

static void walk_function(struct shell *sh, TSNode n)
{
	uint32_t count = ts_node_named_child_count(n);
	struct func *f = arena_take(sh->s->arena, sizeof(*f));
	TSNode name;

	if (count < 2)
		return;
	name = ts_node_named_child(n, 0);
	f->name = arena_str(sh->s->arena, sh->src + ts_node_start_byte(name),
			    ts_node_end_byte(name) - ts_node_start_byte(name));
	f->body = ts_node_named_child(n, 1);
	f->src = sh->src;
	f->tree = sh->tree;
	f->next = sh->funcs;
	sh->funcs = f;
}

static void walk_declaration(struct shell *sh, TSNode n)
{
	uint32_t count = ts_node_named_child_count(n), i;
	bool reference = false;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);
		size_t from = ts_node_start_byte(c), to = ts_node_end_byte(c);

		if (node_is(c, "variable_assignment")) {
			walk_assignment(sh, c);
			if (reference)
				shell_set(sh, sh->src + from,
					  strcspn(sh->src + from, "=+["),
					  (struct word){ "", WORD_OPEN, NULL });
		} else if (node_is(c, "variable_name")) {
			if (node_is(n, "unset_command"))
				shell_set(sh, sh->src + from, to - from,
					  (struct word){ "", WORD_OPEN, NULL });
		} else {
			/* Names for other variables, arithmetic: not followed. */
			word_value(sh, from, to);
			reference |= sh->src[from] == '-' &&
				     memchr(sh->src + from, 'n', to - from);
		}
	}
}

void shell_children(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;

	for (i = 0; i < count; i++)
		shell_walk(sh, ts_node_named_child(n, i), in, out);
}

enum kind {
	KIND_OTHER,
	KIND_COMMAND,
	KIND_PIPE,
	KIND_LIST,
	KIND_REDIRECTED,
	KIND_SUB,
	KIND_MAYBE,
	KIND_FOR,
	KIND_FUNCTION,
	KIND_DECLARATION,
	KIND_ASSIGNMENT,
	KIND_ERROR,
	KIND_NOTHING,
};

static enum kind kind_of(TSNode n)
{
	static const struct {
		const char *type;
		enum kind kind;
	} kinds[] = {
		{ "command", KIND_COMMAND },
		{ "pipeline", KIND_PIPE },
		{ "list", KIND_LIST },
		{ "redirected_statement", KIND_REDIRECTED },
		{ "subshell", KIND_SUB },
		{ "command_substitution", KIND_SUB },
		{ "process_substitution", KIND_SUB },
		{ "if_statement", KIND_MAYBE },
		{ "while_statement", KIND_MAYBE },
		{ "case_statement", KIND_MAYBE },
		{ "c_style_for_statement", KIND_MAYBE },
		{ "for_statement", KIND_FOR },
		{ "function_definition", KIND_FUNCTION },
		{ "declaration_command", KIND_DECLARATION },
		{ "unset_command", KIND_DECLARATION },
		{ "variable_assignment", KIND_ASSIGNMENT },
		{ "ERROR", KIND_ERROR },
		{ "comment", KIND_NOTHING },
	};
	const char *type = ts_node_type(n);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].type, type) == 0)
			return kinds[i].kind;
	return KIND_OTHER;
}

void shell_walk(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	if (sh->depth >= WALK_MAX || !sh->s->steps) {
		judge_defer(sh->s);
		return;
	}
	sh->depth++;
	sh->s->steps--;
	switch (kind_of(n)) {
	case KIND_COMMAND:
		walk_command(sh, n, in, out);
		break;
	case KIND_PIPE:
		walk_pipe(sh, n, in, NULL, out);
		break;
	case KIND_LIST:
		walk_list(sh, n, in, NULL, out);
		break;
	case KIND_REDIRECTED:
		walk_redirected(sh, n, in, out);
		break;
	case KIND_SUB:
		shell_sub(sh, n, in, out);
		break;
	case KIND_MAYBE:
		maybe_children(sh, n, in, out);
		break;
	case KIND_FOR:
		walk_for(sh, n, in, out);
		break;
	case KIND_FUNCTION:
		walk_function(sh, n);
		break;
	case KIND_DECLARATION:
		walk_declaration(sh, n);
		break;
	case KIND_ASSIGNMENT:
		walk_assignment(sh, n);
		break;
	case KIND_ERROR:
		judge_defer(sh->s);
		break;
	case KIND_NOTHING:
		break;
	case KIND_OTHER:
		shell_children(sh, n, in, out);
		break;
	}
	sh->depth--;
}

/* Kept for the next text: making one costs more than most texts. */
static _Thread_local TSParser *parser;

static TSTree *parse(const char *text, size_t len)
{
	TSTree *t;

	if (!parser) {
		parser = ts_parser_new();
		if (!parser || !ts_parser_set_language(parser, tree_sitter_bash()))
			abort();
		ts_parser_set_timeout_micros(parser, PARSE_MICROSECONDS);
	}
	t = ts_parser_parse_string(parser, NULL, text, (uint32_t)len);
	if (!t)
		ts_parser_reset(parser);
	return t;
}

void shell_eval(struct shell *sh, const char *text, const struct flow *in,
		struct done *out)
{
	const char *src = sh->src;
	TSTree *tree = sh->tree;
	struct trees *t;
	TSNode root;

	if (sh->s->nested >= DEPTH_MAX) {
		judge_defer(sh->s);
		return;
	}
	sh->tree = parse(text, strlen(text));
	if (sh->tree) {
		t = arena_take(sh->s->arena, sizeof(*t));
		t->tree = sh->tree;
		t->next = sh->trees;
		sh->trees = t;
		sh->src = text;
		sh->s->nested++;
		root = ts_tree_root_node(sh->tree);
		if (ts_node_has_error(root))
			judge_defer(sh->s);
		shell_walk(sh, root, in, out);
		sh->s->nested--;
	} else {
		judge_defer(sh->s);
	}
	sh->src = src;
	sh->tree = tree;
}

void judge_shell(struct scene *s, const char *text, size_t len, const struct cmd *c,
		 size_t args)
{
	struct shell sh = { .s = s };
	struct flow in = { 0 };
	struct done done = { 0 };
	const char *cwd = s->cwd;
	size_t from = s->from, to = s->to;

	if (memchr(text, 0, len))
		judge_defer(s);
	set_known(&sh, "IFS", " \t\n");
	if (s->home)
		set_known(&sh, "HOME", s->home);
	/* With a NUL behind it, and not longer than the first one. */
	text = arena_str(s->arena, text, len);
	if (c)
		in = (struct flow){ c->from, c->input, c->input_open };
	if (args && !c->more) {
		sh.nargs = args < c->n ? c->n - args : 0;
		sh.args = c->words + c->n - sh.nargs;
	}
	shell_eval(&sh, text, &in, &done);
	s->cwd = cwd;
	s->from = from;
	s->to = to;
	for (; sh.trees; sh.trees = sh.trees->next)
		ts_tree_delete(sh.trees->tree);
}
