/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_SHELL_H
#define STET_POLICY_SHELL_H

#include <tree_sitter/api.h>

#include "policy/judge.h"

/*
 * A walk through shell text that follows what it would do, as far as the text tells:
 * variables with known values, functions, the current directory, what goes through pipes.
 * Lists only grow at their heads, so that a subshell is undone by taking the old head.
 */
struct var {
	const char *name;
	struct word value;
	const struct var *next;
};

struct func {
	const char *name;
	TSNode body;
	const char *src; /* the text that body is in */
	TSTree *tree;
	const char *alias; /* or what it stands for */
	const struct func *next;
};

struct call {
	const char *name;
	const struct call *next;
};

struct trees {
	TSTree *tree;
	struct trees *next;
};

struct shell {
	struct scene *s;
	const char *src; /* the text at hand, and its tree */
	TSTree *tree;
	const struct var *vars;
	const struct func *funcs;
	const struct word *args; /* positional parameters from $1 on; NULL: not known */
	size_t nargs;
	const struct call *calls;
	unsigned piped, depth;
	struct trees *trees;
};

/* What stands on a standard input. */
struct flow {
	const struct names *from;
	const char *text;
	bool open;
};

/* What a piece of text did: the programs it ran and, if that is known, what they wrote. */
struct done {
	const struct names *names;
	const char *text;
	unsigned commands;
};

enum { WALK_MAX = 200, LOOP_MAX = 32 };

bool node_is(TSNode n, const char *type);
void shell_walk(struct shell *sh, TSNode n, const struct flow *in, struct done *out);
void shell_children(struct shell *sh, TSNode n, const struct flow *in, struct done *out);
/* Text that runs in this very shell. */
void shell_eval(struct shell *sh, const char *text, const struct flow *in,
		struct done *out);
void shell_set(struct shell *sh, const char *name, size_t len, struct word value);
const struct word *shell_get(const struct shell *sh, const char *name, size_t len);
/* Nothing is known any more of variables. */
void shell_forget(struct shell *sh);
/* Runs @n in a subshell. */
void shell_sub(struct shell *sh, TSNode n, const struct flow *in, struct done *out);

/* Words as they are put together. */
struct words {
	struct word *v;
	size_t n, cap;
};

/* Evaluates the text [from, to) as a word of a command: it may become several, or none. */
void words_add(struct shell *sh, size_t from, size_t to, struct words *out);
/* The same without splitting: the value of an assignment, a redirection. */
struct word word_value(struct shell *sh, size_t from, size_t to);
/* The body of a heredoc, in which only $, ` and \ mean something. */
struct word word_body(struct shell *sh, size_t from, size_t to);

/* Runs a simple command: function, builtin or program. */
void shell_command(struct shell *sh, struct cmd *c, struct done *out);

#endif
