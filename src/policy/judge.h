/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_JUDGE_H
#define STET_POLICY_JUDGE_H

#include "base/arena.h"
#include "policy/doc.h"

/*
 * Inside of judging. Words of a command are known, or known up to a point (WORD_OPEN): every
 * condition answers no, maybe or yes, and only a yes is a match.
 */
enum tri { TRI_NO, TRI_MAYBE, TRI_YES };

static inline enum tri tri_and(enum tri a, enum tri b)
{
	return a < b ? a : b;
}

static inline enum tri tri_or(enum tri a, enum tri b)
{
	return a > b ? a : b;
}

static inline enum tri tri_not(enum tri a)
{
	return (enum tri)(TRI_YES - a);
}

/* Names of programs, newest first. */
struct names {
	const char *name;
	const struct names *next;
};

enum word_flags {
	WORD_OPEN = 1 << 0,   /* begins with s; how it goes on is not known */
	WORD_SPLIT = 1 << 1,  /* open and unquoted: may be several words, or none */
	WORD_GLOB = 1 << 2,   /* holds *, ? or [ that the shell expands */
	WORD_ITSELF = 1 << 4, /* begins with what the variable that it is for had */
	WORD_NAMES =
		1 << 5, /* holds names of files, which in text may be more than that */
	WORD_UNSURE = WORD_OPEN | WORD_NAMES,
	WORD_FILE = 1 << 3, /* <(…): a file with the output of `from` */
};

struct word {
	const char *s;
	unsigned flags;
	const struct names *from; /* programs whose output the unknown part is */
	const char *shape; /* of an open one: all of it, CODE_GAP for what is not known */
};

/* A simple command. */
struct cmd {
	struct word *words;
	size_t n;
	bool more;		  /* and more words that we do not see */
	const struct names *from; /* what writes to its standard input */
	const char *input;	  /* what that will be, if known */
	bool input_open;	  /* something that is not known */
	const char *names[3];	  /* it goes by, from the most reliable on; or NULL */
	unsigned exe;
};

struct opt {
	const char *name; /* without dashes */
	bool is_long;
	bool exact; /* not to be taken for an abbreviation */
	bool known; /* the table has it: whether it takes a value is certain */
	size_t at;  /* position among the words */
	bool has_value;
	struct word value;
};

struct operand {
	struct word word;
	size_t at; /* position among the words */
};

/* A command line as its program will see it. */
struct line {
	const struct doc_tool *tool; /* or NULL */
	struct opt *opts;
	size_t nopts, opts_cap;
	struct operand *operands;
	size_t noperands, operands_cap;
	bool unsure; /* there may be more options */
	bool more;   /* there may be more operands */
	bool strict; /* abbreviations do not count */
};

/* One question on its way. */
enum relation { REL_NONE, REL_SAME, REL_BELOW, REL_ABOVE };

/* How a path lies to the workspace or to the home: path.c. */
struct lead {
	const char *path, *left;
	bool glob;
	enum relation how;
	enum tri sure;
};

struct scene {
	const struct policy *p;
	struct arena *arena;
	struct verdict *v;
	const char *cwd;		/* NULL: not known; scene_cwd() says what it is */
	const struct exec_facts *facts; /* or NULL */
	const char *workspace, *home, *git;
	bool text;	 /* what is unknown is deferred; otherwise it does not count */
	unsigned depth;	 /* of commands in commands */
	unsigned nested; /* of texts in texts; the place is the outermost one */
	size_t from, to; /* that place */
	bool loosens;	 /* what is looked for is an exception */
	unsigned steps;	 /* left before it is too much */
	size_t made;	 /* letters and words that came out of expansions so far */
	/* The word that was cleaned last, where, and what it is: path.c. */
	const char *cleaned, *cleaned_in, *clean;
	struct lead leads[2]; /* workspace, home */
};

enum { DEPTH_MAX = 24, STEPS_MAX = 20000, MADE_MAX = 8 << 20 };

struct policy {
	const struct doc *const *docs;
	const enum policy_origin *origins;
	size_t docs_count;
	struct policy_limits limits;
	enum verdict_kind fallback;
	char hash[65];
	struct doc **owned; /* docs beyond the built-in ones */
	size_t owned_count;
};

/* Is the rule of that document switched off by another layer? */
bool policy_is_off(const struct policy *p, const char *id);

/* Something cannot be known from here: the exec decides. */
void judge_defer(struct scene *s);

/* A rule holds, surely or perhaps. */
void judge_apply(struct scene *s, enum verdict_kind kind, enum tri sure, const char *rule,
		 const char *why, const char *hint);

/* A command and all that it would run. */
void judge_command(struct scene *s, struct cmd *c);

/*
 * A variable is set: it may be one whose value a program runs, or takes its programs from.
 */
void judge_variable(struct scene *s, const char *name, size_t len,
		    const struct word *value);

/* Text in place of what is not known of a word. */
#define CODE_GAP '\001'

/* The word as code, with gaps. */
const char *word_code(const struct word *w);
/* Code that runs: what it calls, what awk and sed run and write. */
void judge_code(struct scene *s, const struct doc_inner *in, const char *code);
void judge_calls(struct scene *s, const struct doc_inner *in, const char *code);
/* Lines in which some are a shell's. */
void judge_lines(struct scene *s, const struct doc_inner *in, const struct cmd *c,
		 const char *text);
/* A word as it must be written for a shell to see it so. */
const char *shell_quoted(struct scene *s, const char *w);

/* A redirection that writes to @target. */
void judge_write(struct scene *s, const struct word *target);

/*
 * Shell text, in a shell of its own, on the standard input of @c (NULL: none is known). The words
 * of @c from @args on are its parameters, from $1; 0: they are not known.
 */
void judge_shell(struct scene *s, const char *text, size_t len, const struct cmd *c,
		 size_t args);

/* The rules, for one command line. True if one matched for sure. */
bool match_rules(struct scene *s, const struct cmd *c, const struct line *l);

/* Is the name what @pattern says, a name or a glob? */
bool name_matches(const char *pattern, const char *name);

/* Is @pattern one of the names of @c? */
bool match_name(const struct cmd *c, const char *pattern);

/*
 * Does the line have the option? @spec is "-r|--recursive", "-X=DELETE|--request=DELETE". If
 * @found is not NULL it gets the (first) option.
 */
enum tri match_option(const struct line *l, const char *spec, const struct opt **found);

/* Programs whose output it will take for its own program; NULL if there are none. */
const struct names *program_source(const struct cmd *c, const struct line *l);

/* What runs inside of this command. */
void judge_inner(struct scene *s, const struct cmd *c, const struct line *l);

/* The tool of that name, or NULL; later layers come first. */
const struct doc_tool *tool_find(const struct policy *p, const char *name);

/* Parses the words of @c behind the first as the tool (NULL: unknown) would. */
void line_parse(struct scene *s, const struct doc_tool *tool, const struct cmd *c,
		struct line *l);

/* For scene.cwd: it is found when scene_cwd() is asked. */
extern const char cwd_later[];

/* The directory that @cwd, which is or was the scene's, stands for; NULL: not known. */
const char *scene_cwd(const struct scene *s, const char *cwd);

/* An absolute path without ".", ".." and "//"; NULL if that is not known. */
const char *path_clean(struct scene *s, const char *cwd, const char *path);

/*
 * Are the conditions on paths met by this one? @follow: if its last component is a link, what
 * that leads to is meant.
 */
enum tri path_matches(struct scene *s, const struct doc_paths *p, const struct word *w,
		      bool follow);

#endif
