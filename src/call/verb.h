/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CALL_VERB_H
#define STET_CALL_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "call/ctx.h"
#include "call/schema.h"

/*
 * The verbs, as data. One row says all there is to say about a verb: what it takes, which
 * transaction it is about and in which states, what it does to the host, what its result looks
 * like. Parsing, usage, completions, manual pages, JSON and stet help --json are made from it, and
 * so is all that happens before the verb itself (call/call.h).
 *
 * A new verb is one file in verbs/ that defines its row, and one line in verbs/verbs.def.
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

/*
 * The kind of thing that an operand or the argument of an option names; completions follow it.
 */
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
	/* The destination of the result as JSON; either of the two sets json. */
	const char *json_fd, *json_file;
};

/* The part of the user's state that is opened before the verb. */
enum verb_home {
	HOME_NONE,	/* nothing; the verb may open it later */
	HOME_OPEN,	/* the journal; what a crash has left is left */
	HOME_LOOK,	/* what a crash has left is finished first, if that is possible */
	HOME_RECOVERED, /* what a crash has left has to be finished first */
};

/*
 * Which transaction the verb is about. Its name is the operand or option of the kind ARG_TXN;
 * without a name the newest open transaction of the current directory is meant.
 */
enum verb_target {
	TARGET_NONE,
	TARGET_TXN,	  /* one transaction */
	TARGET_TXN_PATHS, /* and paths; a first operand that names none is a path, too */
	TARGET_TXN_NAMED, /* one, if one is named; the words of verb.words are no names */
	TARGET_BODY,	  /* the verb finds it, by call_find() or call_operands() */
};

/* The most that the verb can do. */
enum verb_effect {
	EFFECT_READS, /* changes nothing that a person would miss */
	EFFECT_STORE, /* changes or deletes what transactions hold, or what rules are in force */
	EFFECT_HOST, /* changes the host's files */
	/*
	 * Runs a command, to which standard output belongs: our text goes to standard error,
	 * and the status of our own failures is 125.
	 */
	EFFECT_RUNS,
};

/* How the verb works inside of a sandbox. */
enum verb_inside {
	INSIDE_REFUSED,
	INSIDE_ASKS,	 /* done outside, for the transaction that runs here */
	INSIDE_ANYWHERE, /* of use by itself, there as anywhere */
};

enum verb_flags {
	VERB_JSON = 1 << 0,  /* has a result to report as JSON */
	VERB_LINES = 1 << 1, /* its JSON is one object a line: the items of its lists */
	VERB_CAPTURES =
		1
		<< 2, /* with --json the result holds the output of the command it runs */
	VERB_COLOR = 1 << 3, /* prints in colour */
	VERB_PAGER = 1 << 4, /* prints through a pager */
	/*
	 * The text about a success can be left out: --quiet. The printer of a verb that runs a
	 * command knows which of its text that is.
	 */
	VERB_QUIET = 1 << 5,
	VERB_TXN_FIRST = 1 << 6, /* its result begins with struct txn_facts */
};

/* A set of enum txn_look. */
#define IN(look) (1u << (look))

/*
 * The states in which a verb may act on a transaction, and what is said in the others: "t3 is
 * committed", then @why; "@" in a hint stands for t3.
 */
struct verb_states {
	unsigned in;
	const char *in_place,
		*in_place_hint; /* said of one that works in place; NULL: it may */
	const char *final,
		*final_hint; /* said of one about which the decision is final */
	struct verb_refusal {
		unsigned in;
		const char *why;
		const char *hint;
		bool unless_final; /* the hint does not hold if the decision is final */
	} refusals[4];
};

/*
 * A list of the JSON result that may be longer than memory should hold: each item is made,
 * handed to @emit, which takes the reference, and forgotten.
 */
typedef int verb_item_fn(void *arg, json_t *item, struct err *e);
struct verb_list {
	const char *key; /* the last key of the result; NULL: there is no such list */
	int (*each)(const void *res, verb_item_fn *emit, void *arg, struct err *e);
};

struct verb_call;

struct verb {
	/* The texts for people. */
	const char *name;
	const char *summary; /* one line, no full stop */
	const char
		*description; /* paragraphs; lines that begin with two spaces are code */

	/* Options and operands. */
	const struct verb_opt *opts;
	const struct verb_arg *args;
	size_t request_size;
	/* Refuses a request for what is in it, before anything is opened; or NULL. */
	int (*check)(const struct op_ctx *ctx, const void *req, struct err *e);

	/* Target and effect. */
	enum verb_home home;
	enum verb_target target;
	const char *const *words;	  /* NULL-ended, or NULL */
	const struct verb_states *states; /* NULL: any */
	/* The states, for verbs where they depend on the request; NULL: @states. */
	const struct verb_states *(*states_of)(const void *req);
	enum verb_effect effect;
	enum verb_inside inside;
	unsigned flags; /* enum verb_flags */
	/* @res is zeroed. On failure it holds nothing that needs to be freed, unless the
	 * verb explains its failures. */
	int (*run)(struct verb_call *c, const void *req, void *res, struct err *e);

	/* Its result. */
	size_t result_size;
	const struct field *result; /* of the JSON, after "schema" */
	struct verb_list list;
	/* With --json, is the result a stream, whose lines the printer writes? NULL: no. */
	bool (*streams)(const void *res);
	/* Keys that a JSON error has beside those of every error; NULL: none. Then a failed verb
	 * fills its result in, too. */
	const struct field *explain;
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

/*
 * The result as JSON: an object, or for VERB_LINES an array of those that are to be written one a
 * line. A new reference. verb.list is not part of it.
 */
json_t *verb_json(const struct verb *v, const void *res);

/* Option number @i of a verb, its own first, then those it shares; NULL after the last. */
const struct verb_opt *verb_opt_at(const struct verb *v, size_t i);

#endif
