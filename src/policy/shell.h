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
	bool odd; /* read-only, or with an attribute that changes what it is set to */
	const struct var *next;
};

struct func {
	const char *name;
	TSNode body;
	const char *src; /* the text that body is in */
	TSTree *tree;
	const char *alias; /* or what it stands for */
	bool open;	   /* which goes on in a way that is not known */
	bool gone;	   /* or it is none any more */
	bool maybe;	   /* that may not have come to pass */
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

/* A stretch of the text: a word. */
struct span {
	size_t from, to;
	const struct span *next;
};

/* What stands on a standard input. */
struct flow {
	const struct names *from;
	const char *text;
	bool open;
	bool given;		  /* by a redirection, whatever pipe there is */
	const struct span *words; /* of the command, that stand behind a redirection */
};

struct state {
	const struct var *vars;
	const struct func *funcs;
	const struct word *args;
	size_t nargs;
	const char *cwd;
};

/* Text that runs later, and what was known when it was set. */
struct trap {
	const char *text;
	struct state was;
	struct trap *next;
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
	struct flow input;	   /* of the shell itself: what `exec <` gave it */
	struct trap *traps;	   /* that may still run */
	const struct names *local; /* variables of the function that is running */
	const char *start;	   /* the directory that it began in */
	bool opaque;		   /* a variable may have been set by another name */
	bool returned;		   /* the function may have ended before its end */
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
/* The same, of a value that has been judged. */
void shell_set_again(struct shell *sh, const char *name, size_t len, struct word value);
/* It keeps the value that it has, or that is not known. */
void shell_set_fixed(struct shell *sh, const char *name, size_t len);
/* Its values are not known, whatever it is set to. */
void shell_set_odd(struct shell *sh, const char *name, size_t len);
/* Nothing is known any more of variables. */
void shell_forget(struct shell *sh);

struct state state_of(const struct shell *sh);
void state_back(struct shell *sh, const struct state *was);
/* Is all as it was? */
bool state_same(const struct shell *sh, const struct state *was);
/* What may or may not have run: what it changed is not known any more. */
void state_maybe(struct shell *sh, const struct state *was);

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

bool is_redirect(TSNode n);
/* Applies a redirection to @in, the standard input, and judges what it writes to. */
void walk_redirect(struct shell *sh, TSNode n, struct flow *in);
void walk_redirected(struct shell *sh, TSNode n, const struct flow *in, struct done *out);
/* a | b | c. @last: the redirections of the last one, or NULL. */
void walk_pipe(struct shell *sh, TSNode n, const struct flow *in, const struct flow *last,
	       struct done *out);
void walk_list(struct shell *sh, TSNode n, const struct flow *in, const struct flow *last,
	       struct done *out);
/* The same for whatever @n is: a pipe, a list, a command. */
void walk_last(struct shell *sh, TSNode n, const struct flow *in, const struct flow *last,
	       struct done *out);
void walk_command(struct shell *sh, TSNode n, const struct flow *in, struct done *out);
/* Do they belong together, what ends at @to and what begins at @from? */
bool words_touch(const char *src, size_t to, size_t from);
/* Is it the {name} of {name}>file? */
bool is_fd_name(const char *src, size_t from, size_t to);

/* X=y, where it stands alone or before a command. */
void walk_assignment(struct shell *sh, TSNode n);
/* declare, export, local, readonly, typeset, unset: as words of the grammar, or as others. */
void walk_declaration(struct shell *sh, TSNode n);
bool run_declaration(struct shell *sh, const struct cmd *c);
/* Arithmetic: what it sets is not known. */
void walk_arithmetic(struct shell *sh, const char *text, size_t len);
/* What stands in @text as $(…) or `…` may run, as in the subscript of a variable. */
void walk_subscripts(struct shell *sh, const char *text);
/* Runs what is called so, a function or an alias; false: it is none, or may be none. */
bool run_function(struct shell *sh, struct cmd *c, struct done *out);
/* What the traps run that are newer than @until. */
void run_traps(struct shell *sh, const struct trap *until);
/* A value may hold a subscript with a $(…), which runs where arithmetic uses it. */
void walk_value(struct shell *sh, const struct word *w);

/* Runs a simple command: function, builtin or program. */
void shell_command(struct shell *sh, struct cmd *c, struct done *out);

#endif
