/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_WORD_H
#define STET_SHELL_WORD_H

#include "shell/state.h"

/* A list of words that grows. */
struct words {
	struct word *v;
	size_t n, cap;
};

/* Above so many rounds or members, a loop or a range of braces is not followed one by one. */
enum { LOOP_MAX = 32 };

/* Evaluates the text from @from to @to as a word of a command: it may become several, or none. */
void words_add(struct shell *sh, size_t from, size_t to, struct words *out);

/* Evaluates text without splitting: the value of an assignment, the file of a redirection. */
struct word word_value(struct shell *sh, size_t from, size_t to);

/* Evaluates the body of a heredoc, in which only $, ` and \ have a meaning. */
struct word word_body(struct shell *sh, size_t from, size_t to);

#endif
