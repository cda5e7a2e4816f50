/* SPDX-License-Identifier: Apache-2.0 */
#include "shell/tree.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const TSLanguage *tree_sitter_bash(void);

/* A text that takes longer is given up: a person waits for the verdict. */
enum { PARSE_MICROSECONDS = 500000 };

bool is_redirect(TSNode n)
{
	return node_is(n, "file_redirect") || node_is(n, "heredoc_redirect") ||
	       node_is(n, "herestring_redirect");
}

bool words_touch(const char *src, size_t to, size_t from)
{
	while (to + 2 <= from && src[to] == '\\' && src[to + 1] == '\n')
		to += 2;
	return to == from;
}

bool is_fd_name(const char *src, size_t from, size_t to)
{
	size_t i;

	if (to - from < 3 || src[from] != '{' || src[to - 1] != '}' ||
	    (src[to] != '<' && src[to] != '>'))
		return false;
	for (i = from + 1; i < to - 1; i++)
		if (!isalnum((unsigned char)src[i]) && src[i] != '_')
			return false;
	return true;
}

/* Kept for the next text, because making a parser costs more than parsing most texts. */
static _Thread_local TSParser *parser;

TSTree *tree_parse(const char *text, size_t len)
{
	TSTree *t;

	if (!parser) {
		parser = ts_parser_new();
		if (!parser || !ts_parser_set_language(parser, tree_sitter_bash()))
			abort();
		ts_parser_set_timeout_micros(parser, PARSE_MICROSECONDS);
	}
	t = ts_parser_parse_string(parser, NULL, text, (uint32_t)len);
	if (!t)
		ts_parser_reset(parser);
	return t;
}
