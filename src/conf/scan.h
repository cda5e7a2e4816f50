/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_CONF_SCAN_H
#define STET_CONF_SCAN_H

#include "base/err.h"
#include "conf/lines.h"
#include "conf/origin.h"

/*
 * A first pass over a document, before anything is made of it. It must be one YAML document of
 * moderate size and depth, without aliases (so that it is never larger than it looks) and
 * without NUL characters. The pass notes the lines of keys and of elements of lists.
 */
struct scan_key {
	char *name;
	uint32_t line;
};

struct scan {
	struct conf_lines lines;
	struct scan_key *keys; /* at every depth */
	size_t keys_count;
};

/* ERR_USAGE with "NAME:LINE: reason". Release @out in any case. */
int scan_text(const struct conf_source *source, struct scan *out, struct err *e);
void scan_free(struct scan *s);

/* The line of the first key of that name at or after @line; @line if there is none. */
uint32_t scan_find(const struct scan *s, const char *name, size_t len, uint32_t line);

#endif
