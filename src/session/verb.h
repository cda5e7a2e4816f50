/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_VERB_H
#define STET_SESSION_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "session/ctx.h"

/*
 * The verbs, as data. One row says all there is to say about a verb: what it takes, what
 * it does, how its result looks as JSON. Argument parsing, usage, completions and manual
 * pages are made from it, so that none of them can say something else.
 *
 * A new verb is one file here that defines its row, and one line in verbs.c.
 */
enum opt_type {
	OPT_FLAG,     /* bool */
	OPT_STRING,   /* const char * */
	OPT_LIST,     /* char **, NULL-ended; NULL if not given */
	OPT_DURATION, /* int64_t, milliseconds; 0 if not given */
	OPT_SIZE,     /* uint64_t, bytes; 0 if not given */
	OPT_CHOICE,   /* int: 1 + index into choices; 0 if not given */
	OPT_COUNT,    /* int64_t, 1 or more; 0 if not given */
};

/* What an operand or the argument of an option names; completions follow it. */
enum arg_kind {
	ARG_WORD,
	ARG_TXN,
	ARG_PATH,
	ARG_DIR,
	ARG_ENV,
	ARG_VERB,
	ARG_CHOICE,
	ARG_COMMAND, /* and everything after it */
};

struct verb_opt {
	const char *name; /* long name; NULL ends a table */
	char letter;	  /* short one, or 0 */
	enum opt_type type;
	const char *arg; /* name of its argument, in capitals; NULL for flags */
	const char *help;
	size_t offset;		    /* into the request */
	const char *const *choices; /* of OPT_STRING: words that completion offers */
	enum arg_kind kind;
};

struct verb_arg {
	const char *name; /* in capitals; NULL ends a table */
	enum arg_kind kind;
	bool required;
	bool many; /* char **, NULL-ended (NULL if there are none); last of the table */
	size_t offset; /* into the request: const char *, or char ** if many */
	const char *const *choices;
};

/* Every request begins with this. */
struct verb_common {
	bool help, debug, json, quiet;
	bool no_pager; /* an option of those verbs whose output goes through a pager */
	int color;     /* 1 auto, 2 always, 3 never; 0 not given */
	/* Where the result goes as JSON; either of them sets json. */
	const char *json_fd, *json_file;
};

enum verb_flags {
	VERB_JSON = 1 << 0,  /* has a result to report as JSON */
	VERB_COLOR = 1 << 1, /* prints in colour */
	VERB_PAGER = 1 << 8, /* prints through a pager */
	/*
	 * Standard output belongs to a command that the verb runs: what we say goes to
	 * standard error, and our own failures have status 125.
	 */
	VERB_RUNS = 1 << 2,
	/* With --json the command's output is part of the result: standard output is ours. */
	VERB_CAPTURES = 1 << 4,
	/*
	 * Inside of a sandbox: about the transaction that runs there, so that who supervises
	 * it may answer; or of use by itself, there as anywhere. Neither: refused.
	 */
	VERB_INSIDE = 1 << 5,
	VERB_ANYWHERE = 1 << 6,
	/*
	 * What it has to say of a success can be done without: --quiet. Of one that runs a
	 * command its printer knows what that is.
	 */
	VERB_QUIET = 1 << 7,
	VERB_LINES = 1 << 3, /* its JSON is an array: one object a line is written */
};

/*
 * A list of the JSON result that may be longer than memory should hold: each item is made,
 * handed to @emit, which takes the reference, and forgotten.
 */
typedef int verb_item_fn(void *arg, json_t *item, struct err *e);
struct verb_list {
	const char *key; /* after all those of verb.json; NULL: there is no such list */
	int (*each)(const void *res, verb_item_fn *emit, void *arg, struct err *e);
};

struct verb {
	const char *name;
	const char *summary; /* one line, no full stop */
	const char
		*description; /* paragraphs; lines that begin with two spaces are code */
	const struct verb_opt *opts;
	const struct verb_arg *args;
	unsigned flags;
	size_t request_size, result_size;
	/* @res is zeroed. On failure it holds nothing that needs to be freed, unless the
	 * verb explains its failures. */
	int (*run)(struct op_ctx *ctx, const void *req, void *res, struct err *e);
	/* New reference; VERB_JSON. NULL if the result is a stream, which the printer writes. */
	json_t *(*json)(const void *res);
	struct verb_list list;
	/* Adds to a JSON error what the result of a failure says about it; or NULL. */
	void (*explain)(const void *res, json_t *error);
	int (*status)(const void *req, const void *res); /* exit status; NULL: always 0 */
	void (*free)(void *res);			 /* contents only; may be NULL */
};

/* All of them, in the order in which help shows them; ends with NULL. */
extern const struct verb *const verbs[];

/*
 * Names may have two words: "policy check". The verb that the words of a command line begin
 * with, or NULL; *words: how many those are.
 */
const struct verb *verb_at(int argc, char *const *argv, int *words);

/* Is it the first word of such names, and of this one's? */
bool verb_is_group(const char *name);
bool verb_is_in(const struct verb *v, const char *group);

/* By exact name, or NULL. */
const struct verb *verb_find(const char *name);

/* The verb whose name is nearest to a misspelt one, or NULL if none is near. */
const struct verb *verb_nearest(const char *name);

/* Option number @i of a verb, its own first, then those it shares; NULL after the last. */
const struct verb_opt *verb_opt_at(const struct verb *v, size_t i);

#endif
