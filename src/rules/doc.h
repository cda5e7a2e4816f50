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
 * A policy document as it stands in its file. The same structures are what rules are
 * matched with: the built-in documents are written out as C data by genpolicy at build
 * time, those of users are read by doc_parse(). There is no other form, so nothing has to
 * be prepared when stet starts.
 *
 * X_count is the number of elements of the list X. Lists and strings that were not given
 * are NULL.
 */
enum { DOC_VERSION = 1 };

/* Which of the paths on a command line a condition is about. */
enum doc_which {
	WHICH_ANY,
	WHICH_LAST,   /* the destination: of mv, cp, ln … */
	WHICH_OTHERS, /* all but the destination */
	WHICH_VALUE,  /* values of options that name paths, such as dd's of= */
};

/* Holds if one path is as all of those lists that are given say. */
struct doc_paths {
	enum doc_which which;
	const char **within; /* one of these, or below one */
	uint32_t within_count;
	const char **outside; /* neither */
	uint32_t outside_count;
	const char **is; /* exactly one of these */
	uint32_t is_count;
	const char **above; /* a directory that one of these is in, or one of these */
	uint32_t above_count;
};

/* All of those that are given must hold. */
struct doc_match {
	const char **program; /* names or patterns; one of them */
	uint32_t program_count;
	const char **command; /* sub-commands, "stash drop"; one of them */
	uint32_t command_count;
	const char **options; /* "-r|--recursive", "-X=DELETE"; all of them */
	uint32_t options_count;
	const char **operands; /* patterns; one of them for one operand */
	uint32_t operands_count;
	const char *
		*from; /* programs whose output it reads as its program; one of them */
	uint32_t from_count;
	const char **sql; /* patterns for one of its SQL statements, in lower case */
	uint32_t sql_count;
	struct doc_paths *paths;
	struct doc_paths *writes; /* redirections */
	unsigned exe;		  /* enum exe_flags; one of them */
	uint32_t most;		  /* at most so many operands, + 1; 0: any number */
};

struct doc_tests {
	const char **allow, **defer, **checkpoint, **ask, **deny, **kill;
	uint32_t allow_count, defer_count, checkpoint_count, ask_count, deny_count,
		kill_count;
};

/*
 * How the names begin that something can be about, for a quick no: most rules are about other
 * programs. A bit for each pair of first letters, shared by a few pairs. 0: not known.
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

/* A change at commit. */
struct doc_diff {
	const char *id;
	enum verdict_kind verdict;
	unsigned what; /* enum change_facts_what; one of them */
	bool unseen;   /* counts only where nobody looks at what is committed */
	struct doc_paths *paths;
	const char *why;
	const char *hint;
};

struct doc_class {
	const char *name;
	const char **paths;
	uint32_t paths_count;
};

/* Options of a program or of one of its sub-commands. */
struct doc_options {
	const char *flags;  /* letters; one with ':' behind it takes a value */
	const char **words; /* long names; one with '=' behind it takes a value */
	uint32_t words_count;
};

struct doc_command {
	const char *name; /* "push", or several with commas */
	struct doc_options options;
};

enum doc_style {
	STYLE_GNU,    /* -abc, --long, --lo; operands anywhere */
	STYLE_LONG,   /* -long, as find, java and terraform have it */
	STYLE_ASSIGN, /* key=value, as dd has it */
	STYLE_SIGNAL, /* -KILL, then process numbers, which may be negative */
	STYLE_BUNDLE, /* the first word is letters, with or without a dash: tar, ps, ar */
};

/* Languages that are read, if only for what they run and write. */
enum doc_reads { READS_NOTHING, READS_AWK, READS_SED };

/* How a program runs others. */
struct doc_inner {
	bool command;	    /* its operands are a command */
	uint32_t skip;	    /* after so many */
	bool assign;	    /* and after words such as X=y */
	bool append;	    /* to which more operands are added that we do not see */
	const char **never; /* options with which it runs nothing: command -v */
	uint32_t never_count;
	bool script; /* its first operand is a script: a command under its own name */
	const char *
		*string; /* options with which its first operand is shell text: sh -c */
	uint32_t string_count;
	bool text;   /* its operands, joined, are shell text */
	bool remote; /* on another machine: the paths are not ours */
	const char *
		*texts; /* options whose values are shell text: "-c", "-c=alias.*=!" */
	uint32_t texts_count;
	const char **splits; /* options whose values are split into words: env -S */
	uint32_t splits_count;
	const char **modules; /* options whose value names a command: python -m */
	uint32_t modules_count;
	const char **runs; /* words after which a command stands, up to ; or +: find */
	uint32_t runs_count;
	const char **code; /* options whose values are programs we cannot read */
	uint32_t code_count;
	const char **again; /* options whose value is more of its own command line */
	uint32_t again_count;
	const char *
		*after; /* sub-commands that run what stands behind them: poetry run */
	uint32_t after_count;
	const char *
		*recipes; /* sub-commands ("*": any) whose doing stands in a file: make */
	uint32_t recipes_count;
	bool each; /* what follows ::: are texts, or operands of its command: parallel */
	const char **after_text; /* sub-commands behind which shell text stands */
	uint32_t after_text_count;
	/* where lines of its own language are: options, "." operands, "<" its input */
	const char **lines;
	uint32_t lines_count;
	const char **escapes; /* what a shell's text stands behind in them: "!" */
	uint32_t escapes_count;
	/* functions whose arguments are run, "system"; or become so, "rmtree=rm -rf " */
	const char **calls;
	uint32_t calls_count;
	enum doc_reads reads; /* its code is the first operand, or else the value of */
	const char **program; /* these options */
	uint32_t program_count;
	bool stdin_text; /* a shell: without operands it reads its text from its input */
	bool stdin_code; /* the same, for a language that we cannot read */
};

struct doc_tool {
	uint64_t letters;
	const char **names;
	uint32_t names_count;
	enum doc_style style;
	bool first; /* options end at the first operand */
	struct doc_options options;
	uint32_t depth; /* words of its sub-commands; 0: it has none */
	struct doc_command *commands;
	uint32_t commands_count;
	struct doc_inner *inner;
	uint32_t skip;	     /* operands before the first that is a path */
	const char **values; /* options whose value is a path */
	uint32_t values_count;
	/* options whose value is SQL, "@": a file of it; "." operands, "<" its input */
	const char **sql;
	uint32_t sql_count;
	const char **target; /* of these, those that name a destination */
	uint32_t target_count;
	bool nofollow;	     /* an operand that is a link is meant itself, */
	const char **follow; /* but not with these options */
	uint32_t follow_count;
};

enum doc_variable_what {
	VARIABLE_CODE,	  /* what it names is not shown */
	VARIABLE_TEXT,	  /* shell text */
	VARIABLE_PROMPT,  /* text in which $(…) runs */
	VARIABLE_OPTIONS, /* more options for a program */
	VARIABLE_FILE,	  /* the name of a file that runs, if it is one */
	VARIABLE_PATH,	  /* directories in which programs are looked for */
};

/* Variables of the environment whose values are run. */
struct doc_variable {
	const char **names; /* or patterns */
	uint32_t names_count;
	enum doc_variable_what what;
	const char *of; /* whose options they are */
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
	const char **off; /* ids (or patterns) of rules that do not count */
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

/* One rule as YAML, to be freed. */
char *doc_rule_text(const struct doc_rule *r);
char *doc_diff_text(const struct doc_diff *r);

#endif
