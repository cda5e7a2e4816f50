/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CONF_LINES_H
#define STET_CONF_LINES_H

#include <stddef.h>
#include <stdint.h>

/* A key of the document itself and, if its value is a list, the lines of the elements. */
struct conf_key {
	char name[16];
	uint32_t line;
	uint32_t *items;
	size_t items_count;
};

/* The lines, counted from 1, at which the parts of a document stand. Zeroed is empty. */
struct conf_lines {
	struct conf_key keys[16];
	size_t keys_count;
};

/* The line of a key of the document itself; 1 if the document does not have the key. */
uint32_t conf_line(const struct conf_lines *l, const char *key);

/* The line of element number @i of the list under @key; 1 if there is no such element. */
uint32_t conf_item_line(const struct conf_lines *l, const char *key, size_t i);

void conf_lines_free(struct conf_lines *l);

#endif
