/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_POLICY_SCAN_H
#define STET_POLICY_SCAN_H

#include "policy/doc.h"

/*
 * A first look at a document, before anything is made of it: is it one YAML document of
 * moderate depth, without aliases (so that it is never larger than it looks), without NUL
 * characters? On the way the lines of rules are noted, and where each key stands.
 */
struct scan_key {
	char *name;
	uint32_t line;
};

struct scan {
	struct doc_lines lines;
	struct scan_key *keys;
	size_t keys_count;
};

/* ERR_USAGE with "NAME:LINE: reason". Release @out in any case. */
int scan_text(const char *name, const char *text, size_t len, struct scan *out,
	      struct err *e);
void scan_free(struct scan *s);

/* Line of the first key @name at or after @line; @line itself if there is none. */
uint32_t scan_find(const struct scan *s, const char *name, size_t len, uint32_t line);

#endif
