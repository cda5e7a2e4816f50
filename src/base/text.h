/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_TEXT_H
#define STET_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Is s[0..len) well-formed UTF-8 (no surrogates, no overlong forms)? */
bool text_is_utf8(const char *s, size_t len);

/*
 * Appends @s so that a terminal cannot be told anything by it: control characters, DEL,
 * C1 controls, bidirectional overrides and bytes that are not UTF-8 become \n, \t, \\ or
 * \ooo, and the whole is put in double quotes if (and only if) anything was escaped,
 * or if it holds a double quote. This is git's form.
 */
void text_quote(struct buf *out, const char *s, size_t len);

/* The same without the surrounding quotes: for lines of a diff, messages, argv. */
void text_escape(struct buf *out, const char *s, size_t len);

/*
 * "90", "90s", "5m", "2h", "1d", "250ms" -> milliseconds. "512", "64k", "10M", "2G", "1T"
 * -> bytes (powers of 1024). Return 0 or -EINVAL; overflow and signs are refused.
 */
int text_parse_duration(const char *s, int64_t *ms);
int text_parse_size(const char *s, uint64_t *bytes);

/* "1.2 MiB", "3 min", for people. */
void text_size(struct buf *out, uint64_t bytes);
void text_ago(struct buf *out, int64_t seconds);

#endif
