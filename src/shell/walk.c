/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "shell/builtin.h"
#include "shell/declare.h"
#include "shell/redirect.h"
#include "shell/tree.h"
#include "shell/word.h"

enum { WALK_MAX = 200 };

/* if, case: each branch begins in the state in which the first began. */
static void walk_branches(struct shell *sh, TSNode n, const struct flow *in,
			  struct done *out)
{
	uint32_t count = ts_node_child_count(n), i;
	struct state was = state_of(sh), start = was;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_child(n, i);

		if (node_is(c, "then") || node_is(c, "in"))
			start = state_of(sh);
		if (!ts_node_is_named(c))
			continue;
		if (node_is(c, "elif_clause") || node_is(c, "else_clause") ||
		    node_is(c, "case_item"))
			state_maybe(sh, &start);
		shell_walk(sh, c, in, out);
	}
	state_maybe(sh, &was);
}

/* A variable that the loop sets is not known in the next round. */
static void walk_loop(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	struct state was = state_of(sh);

	shell_children(sh, n, in, out);
	if (!state_same(sh, &was)) {
		state_maybe(sh, &was);
		shell_children(sh, n, in, out);
	}
	state_maybe(sh, &was);
}

/* for ((…)), whose head is arithmetic. */
static void walk_counting(struct shell *sh, TSNode n, const struct flow *in,
			  struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;
	struct state was = state_of(sh);
	TSNode body = { 0 };

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);

		if (node_is(c, "do_group") || node_is(c, "compound_statement"))
			body = c;
		else
			shell_walk(sh, c, NULL, out);
	}
	if (ts_node_is_null(body)) {
		report_unknown(sh->ctx);
		return;
	}
	walk_arithmetic(sh, sh->src + ts_node_start_byte(n),
			ts_node_start_byte(body) - ts_node_start_byte(n));
	walk_loop(sh, body, in, out);
	state_maybe(sh, &was);
}

void shell_sub(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	struct state was = state_of(sh);
	struct trap *traps = sh->traps;

	shell_children(sh, n, in, out);
	run_traps(sh, traps);
	sh->traps = traps;
	state_back(sh, &was);
}

void walk_pipe(struct shell *sh, TSNode n, const struct flow *in, const struct flow *last,
	       struct done *out)
{
	uint32_t count = ts_node_named_child_count(n), i;
	struct flow flow = in ? *in : (struct flow){ 0 };

	flow.given = false;
	flow.words = NULL;
	while (count && node_is(ts_node_named_child(n, count - 1), "comment"))
		count--;
	sh->piped++;
	for (i = 0; i < count; i++) {
		struct state was = state_of(sh);
		struct done done = { 0 };
		TSNode child = ts_node_named_child(n, i);
		struct trap *traps = sh->traps;

		if (node_is(child, "comment"))
			continue;
		if (last && i + 1 == count) {
			/* The last command's redirections count more than the pipe. */
			struct flow own = last->given ? *last : flow;

			own.words = last->words;
			walk_last(sh, child, &flow, &own, &done);
		} else {
			shell_walk(sh, child, &flow, &done);
		}
		run_traps(sh, traps);
		sh->traps = traps;
		state_back(sh, &was);
		if (i + 1 == count) {
			out->text = out->commands ? NULL : done.text;
			out->commands++;
		}
		/* All programs before the last command have a part in its input. */
		if (done.names) {
			const struct names *end = done.names;

			for (; end; end = end->next) {
				struct names *copy = arena_take(sh->ctx->arena,
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
		struct names *copy = arena_take(sh->ctx->arena, sizeof(*copy));

		copy->name = flow.from->name;
		copy->next = out->names;
		out->names = copy;
	}
	sh->piped--;
}

/* The state up to the first command in a list that can fail: that far the list surely ran. */
struct listing {
	struct state sure;
	bool failing;
};

static bool cannot_fail(const struct shell *sh, TSNode n)
{
	size_t from = ts_node_start_byte(n), to = ts_node_end_byte(n);

	if (node_is(n, "declaration_command") || node_is(n, "function_definition"))
		return true;
	return (node_is(n, "variable_assignment") ||
		node_is(n, "variable_assignments")) &&
	       !memchr(sh->src + from, '`', to - from) &&
	       !memmem(sh->src + from, to - from, "$(", 2);
}

static void walk_parts(struct shell *sh, TSNode n, const struct flow *in,
		       const struct flow *last, struct done *out, struct listing *l)
{
	uint32_t count = ts_node_child_count(n), i;
	bool other = false;

	for (i = 0; i < count; i++) {
		TSNode child = ts_node_child(n, i);
		const struct flow *f = i + 1 == count ? last : NULL;
		struct state was = state_of(sh);

		if (!ts_node_is_named(child)) {
			other = node_is(child, "||");
			continue;
		}
		if (node_is(child, "list"))
			walk_parts(sh, child, in, f, out, l);
		else if (f)
			walk_last(sh, child, in, f, out);
		else
			shell_walk(sh, child, in, out);
		if (other)
			state_maybe(sh, &was);
		if (!l->failing) {
			l->sure = state_of(sh);
			l->failing = !cannot_fail(sh, child);
		}
	}
}

/*
 * a && b || c: a command in the list sees the changes of the commands before it. Behind
 * the list, only changes that were surely made are known.
 */
static void walk_list(struct shell *sh, TSNode n, const struct flow *in,
		      const struct flow *last, struct done *out)
{
	struct listing l = { state_of(sh), false };
	const char *cwd;

	walk_parts(sh, n, in, last, out, &l);
	cwd = sh->ctx->cwd;
	if (state_same(sh, &l.sure))
		return;
	state_maybe(sh, &l.sure);
	/*
	 * cd x && make; rm y: if the cd has failed, y lies in the directory where the shell
	 * began. To take it as in x is no milder.
	 */
	if (l.sure.cwd && l.sure.cwd == sh->start)
		sh->ctx->cwd = cwd;
}

void walk_last(struct shell *sh, TSNode n, const struct flow *in, const struct flow *last,
	       struct done *out)
{
	if (node_is(n, "pipeline"))
		walk_pipe(sh, n, in, last, out);
	else if (node_is(n, "list"))
		walk_list(sh, n, in, last, out);
	else if (node_is(n, "negated_command") && ts_node_named_child_count(n) == 1)
		walk_last(sh, ts_node_named_child(n, 0), in, last, out);
	else
		shell_walk(sh, n, last, out);
}

static void note_place(struct shell *sh, TSNode n)
{
	if (sh->ctx->nested == 1) {
		sh->ctx->from = ts_node_start_byte(n);
		sh->ctx->to = ts_node_end_byte(n);
	}
}

static void add_word(struct shell *sh, size_t from, size_t to, struct words *words)
{
	if (to && !is_fd_name(sh->src, from, to))
		words_add(sh, from, to, words);
}

/* Is it a ((…)) that the grammar has taken for the name of a command? */
static bool is_arithmetic(TSNode n)
{
	return node_is(n, "command_name") && ts_node_named_child_count(n) == 1 &&
	       node_is(ts_node_named_child(n, 0), "arithmetic_expansion") &&
	       node_is(ts_node_child(ts_node_named_child(n, 0), 0), "((");
}

/* Evaluates the words of a command, including those behind its redirections. */
static void read_words(struct shell *sh, TSNode n, struct flow *f, struct words *words)
{
	uint32_t count = ts_node_child_count(n), i;
	struct flow earlier = { 0 };
	size_t from = 0, to = 0;
	const struct span *w;
	bool given = f->given;

	for (i = 0; i < count; i++) {
		TSNode child = ts_node_child(n, i);

		if (node_is(child, "variable_assignment"))
			continue;
		if (is_redirect(child)) {
			add_word(sh, from, to, words);
			to = 0;
			/* A redirection behind all words counts more than this one. */
			walk_redirect(sh, child, given ? &earlier : f);
			continue;
		}
		if (node_is(child, "ERROR") || node_is(child, "comment")) {
			report_unknown(sh->ctx);
			continue;
		}
		if (to && !words_touch(sh->src, to, ts_node_start_byte(child))) {
			add_word(sh, from, to, words);
			to = 0;
		}
		if (!to)
			from = ts_node_start_byte(child);
		to = ts_node_end_byte(child);
		if (node_is(child, "subshell") || is_arithmetic(child)) {
			/* time (…), ((…)) */
			struct done done = { 0 };

			shell_walk(sh, child, f, &done);
			to = 0;
		}
	}
	add_word(sh, from, to, words);
	for (w = f->words; w; w = w->next)
		add_word(sh, w->from, w->to, words);
}

/*
 * Carries out assignments before a command, which functions and builtins see. Returns how
 * many there are.
 */
static unsigned set_before(struct shell *sh, TSNode n)
{
	uint32_t count = ts_node_child_count(n), i;
	unsigned set = 0;

	for (i = 0; i < count; i++) {
		TSNode child = ts_node_child(n, i);

		if (!node_is(child, "variable_assignment"))
			continue;
		walk_assignment(sh, child);
		set++;
	}
	return set;
}

/* Gives the variables of assignments before a command their old values again. */
static void set_back(struct shell *sh, const struct var *set, const struct var *was)
{
	static const struct word unknown = { "", WORD_OPEN, NULL };
	const struct shell old = { .ctx = sh->ctx, .vars = was };

	for (; set && set != was; set = set->next) {
		size_t len = strlen(set->name);
		const struct word *w = shell_get(&old, set->name, len);

		/* shell_set() would have the value judged a second time. */
		if (w && !(w->flags & WORD_OPEN) && strcmp(set->name, "IFS") == 0)
			shell_set(sh, set->name, len, *w);
		else
			shell_set_again(sh, set->name, len, w ? *w : unknown);
	}
}

void walk_command(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	struct flow f = in ? *in : (struct flow){ 0 };
	const struct var *was, *set;
	struct words words = { 0 };
	struct cmd c = { 0 };
	unsigned before;

	note_place(sh, n);
	if (!f.from && !f.text && !f.open)
		f = (struct flow){ .from = sh->input.from,
				   .text = sh->input.text,
				   .open = sh->input.open,
				   .words = f.words };
	read_words(sh, n, &f, &words);
	was = sh->vars;
	before = set_before(sh, n);
	set = sh->vars;
	c.words = words.v;
	c.n = words.n;
	c.from = f.from;
	c.input = f.text;
	c.input_open = f.open;
	note_place(sh, n);
	shell_command(sh, &c, out);
	if (c.n == 1 && f.given && strcmp(c.words[0].s, "exec") == 0)
		sh->input = f;
	if (before && words.n)
		set_back(sh, set, was);
}

/* Has more changed since @was than the variable of the loop? */
static bool changes_more(const struct shell *sh, const struct state *was,
			 const char *name, size_t len)
{
	const struct var *v = sh->vars;

	for (; v && v != was->vars; v = v->next)
		if (strlen(v->name) != len || memcmp(v->name, name, len) != 0)
			return true;
	return sh->funcs != was->funcs || sh->args != was->args ||
	       sh->ctx->cwd != was->cwd;
}

static void walk_for(struct shell *sh, TSNode n, const struct flow *in, struct done *out)
{
	uint32_t count = ts_node_child_count(n), i;
	struct state was = state_of(sh);
	struct words words = { 0 };
	TSNode name = { 0 }, body = { 0 };
	size_t from = 0, to = 0, k;
	unsigned round;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_child(n, i);

		if (node_is(c, "do_group") || node_is(c, "compound_statement")) {
			body = c;
		} else if (node_is(c, "variable_name") && ts_node_is_null(name)) {
			name = c;
		} else if (ts_node_is_named(c)) {
			if (to && !words_touch(sh->src, to, ts_node_start_byte(c))) {
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
		report_unknown(sh->ctx);
		return;
	}
	from = ts_node_start_byte(name);
	to = ts_node_end_byte(name);
	if (!words.n || words.n > LOOP_MAX) {
		words.v = arena_take(sh->ctx->arena, sizeof(*words.v));
		words.v[0] = (struct word){ "", WORD_OPEN, NULL };
		words.n = 1;
	}
	for (round = 0; round < 2; round++) {
		for (k = 0; k < words.n && sh->ctx->steps; k++) {
			shell_set(sh, sh->src + from, to - from, words.v[k]);
			shell_children(sh, body, in, out);
		}
		state_maybe(sh, &was);
		if (!changes_more(sh, &was, sh->src + from, to - from))
			break;
	}
}

static bool is_special(const char *name)
{
	static const char *const special[] = {
		"command_not_found_handle",
		"[",
		"declare",
		"typeset",
		"export",
		"readonly",
		"local",
		"unset",
		"unsetenv",
		"time",
		"coproc",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(special); i++)
		if (strcmp(special[i], name) == 0)
			return true;
	return false;
}

static void walk_function(struct shell *sh, TSNode n)
{
	uint32_t count = ts_node_named_child_count(n);
	struct func *f = arena_take(sh->ctx->arena, sizeof(*f));
	struct done done = { 0 };
	TSNode name;

	if (count < 2)
		return;
	name = ts_node_named_child(n, 0);
	f->name = arena_str(sh->ctx->arena, sh->src + ts_node_start_byte(name),
			    ts_node_end_byte(name) - ts_node_start_byte(name));
	f->body = ts_node_named_child(n, 1);
	f->src = sh->src;
	f->tree = sh->tree;
	f->next = sh->funcs;
	sh->funcs = f;
	if (is_special(f->name)) {
		/*
		 * A function of such a name runs without a call, or by a word that the
		 * grammar takes for its own.
		 */
		struct word word = { f->name, 0, NULL };
		struct cmd c = { .words = &word, .n = 1, .more = true };

		run_function(sh, &c, &done);
	}
}

/* Walks over subscripts in a test: [ -v 'a[$(…)]' ]. */
static void walk_tested(struct shell *sh, TSNode n)
{
	uint32_t count = ts_node_named_child_count(n), i;

	for (i = 0; i < count; i++) {
		TSNode c = ts_node_named_child(n, i);
		size_t from = ts_node_start_byte(c), to = ts_node_end_byte(c);

		if (node_is(c, "raw_string") && memchr(sh->src + from, '[', to - from))
			walk_subscripts(sh, word_value(sh, from, to).s);
		else if (node_is(c, "unary_expression") ||
			 node_is(c, "binary_expression"))
			walk_tested(sh, c);
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
	KIND_BRANCHES,
	KIND_LOOP,
	KIND_COUNTING,
	KIND_ARITHMETIC,
	KIND_GROUP,
	KIND_TEST,
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
		{ "if_statement", KIND_BRANCHES },
		{ "case_statement", KIND_BRANCHES },
		{ "while_statement", KIND_LOOP },
		{ "c_style_for_statement", KIND_COUNTING },
		{ "arithmetic_expansion", KIND_ARITHMETIC },
		{ "compound_statement", KIND_GROUP },
		{ "test_command", KIND_TEST },
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
	struct flow plain;
	enum kind kind;

	if (sh->depth >= WALK_MAX || !sh->ctx->steps) {
		report_unknown(sh->ctx);
		return;
	}
	sh->depth++;
	sh->ctx->steps--;
	kind = kind_of(n);
	if (in && (in->words || in->given) && kind != KIND_COMMAND &&
	    kind != KIND_REDIRECTED) {
		if (in->words)
			report_unknown(sh->ctx);
		plain = *in;
		plain.words = NULL;
		plain.given = false;
		in = &plain;
	}
	switch (kind) {
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
	case KIND_BRANCHES:
		walk_branches(sh, n, in, out);
		break;
	case KIND_LOOP:
		walk_loop(sh, n, in, out);
		break;
	case KIND_COUNTING:
		walk_counting(sh, n, in, out);
		break;
	case KIND_TEST:
		shell_children(sh, n, in, out);
		walk_tested(sh, n);
		break;
	case KIND_GROUP:
	case KIND_ARITHMETIC:
		shell_children(sh, n, in, out);
		if (strncmp(sh->src + ts_node_start_byte(n), "((", 2) == 0 ||
		    strncmp(sh->src + ts_node_start_byte(n), "$((", 3) == 0 ||
		    strncmp(sh->src + ts_node_start_byte(n), "$[", 2) == 0)
			walk_arithmetic(sh, sh->src + ts_node_start_byte(n),
					ts_node_end_byte(n) - ts_node_start_byte(n));
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
		report_unknown(sh->ctx);
		break;
	case KIND_NOTHING:
		break;
	case KIND_OTHER:
		shell_children(sh, n, in, out);
		break;
	}
	sh->depth--;
}

void shell_eval(struct shell *sh, const char *text, const struct flow *in,
		struct done *out)
{
	const char *src = sh->src;
	TSTree *tree = sh->tree;
	struct trees *t;
	TSNode root;

	if (sh->ctx->nested >= DEPTH_MAX) {
		report_unknown(sh->ctx);
		return;
	}
	sh->tree = tree_parse(text, strlen(text));
	if (sh->tree) {
		t = arena_take(sh->ctx->arena, sizeof(*t));
		t->tree = sh->tree;
		t->next = sh->trees;
		sh->trees = t;
		sh->src = text;
		sh->ctx->nested++;
		root = ts_tree_root_node(sh->tree);
		if (ts_node_has_error(root))
			report_unknown(sh->ctx);
		shell_walk(sh, root, in, out);
		sh->ctx->nested--;
	} else {
		report_unknown(sh->ctx);
	}
	sh->src = src;
	sh->tree = tree;
}
