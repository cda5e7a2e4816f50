/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RULES_DOC_H
#define STET_RULES_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "conf/lines.h"
#include "conf/origin.h"
#include "rules/verdict.h"

/*
 * A document of rules as it stands in its file. Rules are matched in this same form, so nothing
 * has to be prepared when stet starts: genpolicy writes the built-in documents out as C data
 * at build time, and doc_parse() reads those of users.
 *
 * X_count is the number of elements of the list X. A list or string that was not given is
 * NULL.
 */
enum { DOC_VERSION = 1 };

/* The paths on a command line that a condition is about. */
enum doc_which {
	WHICH_ANY,
	WHICH_LAST,   /* the destination: of mv, cp, ln … */
	WHICH_OTHERS, /* all but the destination */
	WHICH_VALUE,  /* values of options that name paths, such as dd's of= */
};

/* A condition on paths: it holds if one path is in all of the given lists. */
struct doc_paths {
	enum doc_which which;
	const char **within; /* the path is one of these, or below one of them */
	uint32_t within_count;
	const char **outside; /* the path is not within any of these */
	uint32_t outside_count;
	const char **is; /* the path is one of these */
	uint32_t is_count;
	const char *
		*above; /* the path is one of these, or a directory above one of them */
	uint32_t above_count;
};

/* The conditions of a rule. All that are given must hold. */
struct doc_match {
	const char **program; /* names or patterns; one matches */
	uint32_t program_count;
	const char **command; /* sub-commands such as "stash drop"; one matches */
	uint32_t command_count;
	const char **options; /* "-r|--recursive", "-X=DELETE"; all are given */
	uint32_t options_count;
	const char **operands; /* patterns; one matches one operand */
	uint32_t operands_count;
	/* Programs; the command takes the output of one of them for its own program. */
	const char **from;
	uint32_t from_count;
	const char **sql; /* patterns in lower case; one matches one SQL statement */
	uint32_t sql_count;
	struct doc_paths *paths;
	struct doc_paths *writes; /* files that redirections write to */
	unsigned exe;		  /* enum exe_flags; the program has one of these */
	uint32_t most;		  /* the most operands, + 1; 0: any number */
};

/* Shell texts by the verdict that the rule must lead to. */
struct doc_tests {
	const char **allow, **defer, **checkpoint, **ask, **deny, **kill;
	uint32_t allow_count, defer_count, checkpoint_count, ask_count, deny_count,
		kill_count;
};

/*
 * A bit for the first two letters of a name; a few pairs of letters share a bit. The bits of all
 * names of a rule tell at once that most rules are about other programs. 0: not known.
 */
static inline uint64_t doc_letters(const char *name)
{
	const unsigned second = *name ? (unsigned char)name[1] : 0U;

	return UINT64_C(1) << (((unsigned char)*name * 7U + second * 11U) & 63U);
}

struct doc_rule {
	uint64_t letters;
	const char *id;
	enum verdict_kind verdict;
	const char *group;
	struct doc_match match;
	struct doc_match *unless;
	const char *why;
	const char *hint;
	struct doc_tests *tests;
};

/* A rule about changes, at commit. */
struct doc_diff {
	const char *id;
	enum verdict_kind verdict;
	unsigned what; /* enum change_facts_what; the change has one of these */
	bool unseen;   /* the rule counts only if nobody looks at the changes first */
	struct doc_paths *paths;
	const char *why;
	const char *hint;
};

/* Paths that have a common name: "@name" in a list stands for all of them. */
struct doc_class {
	const char *name;
	const char **paths;
	uint32_t paths_count;
};

/* Options of a program or of one of its sub-commands. */
struct doc_options {
	const char *flags;  /* letters; a letter with ':' behind it takes a value */
	const char **words; /* long names; a name with '=' behind it takes a value */
	uint32_t words_count;
};

struct doc_command {
	const char *name; /* "push", or several names with commas */
	struct doc_options options;
};

/* How a program reads its options. */
enum doc_style {
	STYLE_GNU,    /* -abc, --long, --lo; operands anywhere */
	STYLE_LONG,   /* -long, as in find, java and terraform */
	STYLE_ASSIGN, /* key=value, as in dd */
	STYLE_SIGNAL, /* -KILL, then process numbers, which may be negative */
	STYLE_BUNDLE, /* the first word is letters, with or without a dash: tar, ps, ar */
};

/* Languages whose programs are parsed for what they run and write. */
enum doc_reads { READS_NOTHING, READS_AWK, READS_SED };

/* How a program runs others. */
struct doc_inner {
	bool command;	    /* the operands are a command, */
	uint32_t skip;	    /* behind the first so many, */
	bool assign;	    /* and behind words such as X=y */
	bool append;	    /* the program adds operands that the text does not show */
	const char **never; /* options with which the program runs nothing: command -v */
	uint32_t never_count;
	bool script; /* the first operand is a script, which is judged as a command, too */
	/* Options with which the first operand is shell text: sh -c. */
	const char **string;
	uint32_t string_count;
	bool text;   /* the operands, joined, are shell text */
	bool remote; /* on another machine, so that paths are not those of the host */
	/* Options whose values are shell text: "-c", "-c=alias.*=!". */
	const char **texts;
	uint32_t texts_count;
	const char **splits; /* options whose values are split into words: env -S */
	uint32_t splits_count;
	const char **modules; /* options whose value names a command: python -m */
	uint32_t modules_count;
	const char **runs; /* words behind which a command stands, up to ; or +: find */
	uint32_t runs_count;
	const char **code; /* options whose values are programs that are not parsed */
	uint32_t code_count;
	const char **again; /* options whose value continues the program's command line */
	uint32_t again_count;
	const char **after; /* sub-commands behind which a command stands: poetry run */
	uint32_t after_count;
	/* Sub-commands ("*": any) that take commands from a file: make. */
	const char **recipes;
	uint32_t recipes_count;
	bool each; /* behind ::: stand texts, or operands for the command: parallel */
	const char **after_text; /* sub-commands behind which shell text stands */
	uint32_t after_text_count;
	/* Where texts in its own language are: options, "." operands, "<" standard input. */
	const char **lines;
	uint32_t lines_count;
	const char **escapes; /* what stands before shell text in these texts: "!" */
	uint32_t escapes_count;
	/* Functions that run their arguments, "system"; or a command, "rmtree=rm -rf ". */
	const char **calls;
	uint32_t calls_count;
	/* The language of its programs, which are the first operand or the value of */
	enum doc_reads reads;
	const char **program; /* these options */
	uint32_t program_count;
	bool stdin_text; /* a shell: without operands it reads shell text from its input */
	bool stdin_code; /* the same, for a language that is not parsed */
};

/* How a program reads its command line. */
struct doc_tool {
	uint64_t letters; /* of the names: doc_letters() */
	const char **names;
	uint32_t names_count;
	enum doc_style style;
	bool first; /* options end at the first operand */
	struct doc_options options;
	uint32_t depth; /* the number of words of a sub-command; 0: there are none */
	struct doc_command *commands;
	uint32_t commands_count;
	struct doc_inner *inner;
	uint32_t skip;	     /* operands before the first that is a path */
	const char **values; /* options whose value is a path */
	uint32_t values_count;
	/*
	 * Where SQL is: options, "@" and options whose value is a file of SQL, "." operands,
	 * "<" standard input.
	 */
	const char **sql;
	uint32_t sql_count;
	const char **target; /* options that name a destination, among `values` */
	uint32_t target_count;
	bool nofollow;	     /* links among the operands are not followed, */
	const char **follow; /* except with these options */
	uint32_t follow_count;
};

/* How programs use the value of a variable. */
enum doc_variable_what {
	VARIABLE_CODE, /* they run code that the value names and the text does not show */
	VARIABLE_TEXT, /* they run it as shell text */
	VARIABLE_PROMPT,  /* they expand $(…) in it */
	VARIABLE_OPTIONS, /* they read further options from it */
	VARIABLE_FILE,	  /* they run the file that it names, if it names one */
	VARIABLE_PATH,	  /* they look for programs in the directories that it names */
};

/* Variables of the environment that programs run or find programs by. */
struct doc_variable {
	const char **names; /* or patterns */
	uint32_t names_count;
	enum doc_variable_what what;
	const char *of; /* VARIABLE_OPTIONS: the program whose options these are */
};

struct doc_limits {
	const char *wall, *cpu, *memory, *disk, *file, *output;
	int64_t pids, files;
};

struct doc {
	uint32_t version;
	enum verdict_kind fallback; /* "default" */
	struct doc_limits *limits;
	const char **environment;
	uint32_t environment_count;
	const char **off; /* ids or patterns of ids: these rules do not count */
	uint32_t off_count;
	struct doc_class *classes;
	uint32_t classes_count;
	struct doc_tool *tools;
	uint32_t tools_count;
	struct doc_variable *variables;
	uint32_t variables_count;
	struct doc_rule *rules;
	uint32_t rules_count;
	struct doc_diff *diff;
	uint32_t diff_count;
};

/*
 * Reads a document. *out is to be released with doc_free(), *lines (@lines may be NULL) with
 * conf_lines_free(). ERR_USAGE with "NAME:LINE: reason" if the text does not have the form of
 * a document; see conf_load(). Whether the rules make sense is not looked at.
 */
int doc_parse(const struct conf_source *source, struct doc **out,
	      struct conf_lines *lines, struct err *e);
void doc_free(struct doc *d);

/* The text of a rule in YAML, to be freed. */
char *doc_rule_text(const struct doc_rule *r);
char *doc_diff_text(const struct doc_diff *r);

#endif
