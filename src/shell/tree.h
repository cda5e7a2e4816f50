/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_SHELL_TREE_H
#define STET_SHELL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <tree_sitter/api.h>

/* Parses shell text; NULL: that took too long. The tree is to be deleted. */
TSTree *tree_parse(const char *text, size_t len);

static inline bool node_is(TSNode n, const char *type)
{
	return strcmp(ts_node_type(n), type) == 0;
}

bool is_redirect(TSNode n);

/* Are the part that ends at @to and the part that begins at @from one word? */
bool words_touch(const char *src, size_t to, size_t from);

/* Is the text from @from to @to the {name} of {name}>file? */
bool is_fd_name(const char *src, size_t from, size_t to);

#endif
