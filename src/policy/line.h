/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_LINE_H
#define STET_POLICY_LINE_H

#include "policy/scene.h"
#include "shell/cmd.h"

struct opt {
	const char *name; /* without dashes */
	bool is_long;
	bool exact; /* the name is whole: it is not taken for an abbreviation */
	bool known; /* the tool's table has it, so whether it takes a value is certain */
	size_t at;  /* position among the words */
	bool has_value;
	struct word value;
};

struct operand {
	struct word word;
	size_t at; /* position among the words */
};

/* A command line as its program will read it. */
struct line {
	const struct doc_tool *tool; /* or NULL */
	struct opt *opts;
	size_t nopts, opts_cap;
	struct operand *operands;
	size_t noperands, operands_cap;
	bool unsure; /* there may be further options */
	bool more;   /* there may be further operands */
	bool strict; /* abbreviations of long options do not count */
};

/* Parses the words of @c behind the first as @tool would. Without a tool (NULL) it guesses. */
void line_parse(struct scene *s, const struct doc_tool *tool, const struct cmd *c,
		struct line *l);

#endif
