/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_STATE_H
#define STET_SHELL_STATE_H

#include <tree_sitter/api.h>

#include "shell/cmd.h"
#include "shell/context.h"

/*
 * The state of a shell whose text is being followed: its variables, functions, parameters and
 * current directory, as far as the text tells them. Lists only grow at their heads, so a
 * subshell is undone by taking the old head.
 */
struct var {
	const char *name;
	struct word value;
	bool odd; /* read-only, or with an attribute that changes what is assigned */
	const struct var *next;
};

/* A function or an alias. */
struct func {
	const char *name;
	TSNode body;
	const char *src; /* the text that body is in */
	TSTree *tree;
	const char *alias; /* the text that an alias stands for; NULL for a function */
	bool open;	   /* the end of that text is not known */
	bool gone;	   /* from here on there is no function of that name */
	bool maybe;	   /* the definition may not have been carried out */
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

/* A stretch of the text that is a word. */
struct span {
	size_t from, to;
	const struct span *next;
};

/* The standard input of a command. */
struct flow {
	const struct names *from; /* programs that write to it */
	const char *text;	  /* what is read from it; NULL: not known */
	bool open;		  /* there is an input whose text is not known */
	bool given;		  /* by a redirection, which counts more than a pipe */
	const struct span
		*words; /* words of the command that stand behind a redirection */
};

struct state {
	const struct var *vars;
	const struct func *funcs;
	const struct word *args;
	size_t nargs;
	const char *cwd;
};

/* The text of a trap, which runs later, and the state in which it was set. */
struct trap {
	const char *text;
	struct state was;
	struct trap *next;
};

struct shell {
	struct context *ctx;
	const char *src; /* the text that is followed, and its tree */
	TSTree *tree;
	const struct var *vars;
	const struct func *funcs;
	const struct word *args; /* positional parameters from $1 on; NULL: not known */
	size_t nargs;
	const struct call *calls;
	unsigned piped, depth;
	struct trees *trees;
	struct flow input;	   /* the shell's own, as `exec <` has set it */
	struct trap *traps;	   /* the traps that may still run */
	const struct names *local; /* local variables of the function that is running */
	const char *start;	   /* the directory in which the shell began */
	bool opaque;   /* any variable may have been set, under a computed name */
	bool returned; /* the function may have ended before its last line */
};

/* The effect of a piece of text: the programs that ran and, if known, the text they wrote. */
struct done {
	const struct names *names;
	const char *text;
	unsigned commands;
};

/* The value of a variable; NULL if the text has not set it. */
const struct word *shell_get(const struct shell *sh, const char *name, size_t len);

/* Sets a variable, and has the setting judged. */
void shell_set(struct shell *sh, const char *name, size_t len, struct word value);

/* Sets a variable to a value that has been judged before. */
void shell_set_again(struct shell *sh, const char *name, size_t len, struct word value);

/* From here on the variable keeps its value: it is read-only. */
void shell_set_fixed(struct shell *sh, const char *name, size_t len);

/* From here on the values of the variable are not known, whatever is assigned. */
void shell_set_odd(struct shell *sh, const char *name, size_t len);

/* From here on no variable, parameter or directory is known. */
void shell_forget(struct shell *sh);

struct state state_of(const struct shell *sh);
void state_back(struct shell *sh, const struct state *was);

/* Is the state of the shell what it was? */
bool state_same(const struct shell *sh, const struct state *was);

/* The text since @was may or may not have run: what it changed is not known any more. */
void state_maybe(struct shell *sh, const struct state *was);

#endif
