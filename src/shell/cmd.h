/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SHELL_CMD_H
#define STET_SHELL_CMD_H

#include <stdbool.h>
#include <stddef.h>

/* A list of program names, the newest first. */
struct names {
	const char *name;
	const struct names *next;
};

enum word_flags {
	WORD_OPEN = 1 << 0,   /* only the beginning, which is in s, is known */
	WORD_SPLIT = 1 << 1,  /* open and unquoted: may be several words, or none */
	WORD_GLOB = 1 << 2,   /* holds *, ? or [ that the shell expands */
	WORD_FILE = 1 << 3,   /* <(…): a file with the output of `from` */
	WORD_ITSELF = 1 << 4, /* begins with the old value of the variable it is for */
	WORD_NAMES = 1 << 5,  /* holds file names, which a shell may read as syntax */
	WORD_UNSURE = WORD_OPEN | WORD_NAMES,
};

/* A word of a command. Without WORD_OPEN all of it is known. */
struct word {
	const char *s;
	unsigned flags;
	const struct names *from; /* programs whose output the unknown part is */
	const char *
		shape; /* of an open word: all of it, with CODE_GAP in each unknown place */
};

/* Stands in a text for a part that is not known. */
#define CODE_GAP '\001'

/* A simple command. */
struct cmd {
	struct word *words;
	size_t n;
	bool more;		  /* further words follow, which are not known */
	const struct names *from; /* programs that write to its standard input */
	const char *input;	  /* the text of its standard input, if that is known */
	bool input_open;	  /* it has a standard input whose text is not known */
	const char *names[3]; /* names of the program, the most reliable first; or NULL */
	unsigned exe;
};

#endif
