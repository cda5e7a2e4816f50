/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CALL_JSON_H
#define STET_CALL_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "commit/commit.h"
#include "diff/change.h"

/*
 * Results as JSON, the same for every front end. Objects are in order, keys are never
 * renamed within one schema number, and running out of memory aborts.
 */

/* {"schema": 1} */
json_t *json_result(void);

/* {"schema": 1, "error": {"kind", "message", "hint", "errno"}} */
json_t *json_error(const struct err *e);

/*
 * Sets @key to bytes that need not be UTF-8. Where they are not, it gets a display form
 * (each bad byte becomes U+FFFD) and @key_b64 gets the bytes themselves.
 */
void json_set_bytes(json_t *o, const char *key, const char *s, size_t len);
void json_set_str(json_t *o, const char *key, const char *s); /* NULL: null */

/* A time in nanoseconds as "2026-01-31T12:00:00.123Z"; 0 becomes null. */
void json_set_time(json_t *o, const char *key, int64_t ns);

/* A string in which each byte that is no part of well-formed UTF-8 became U+FFFD. */
json_t *json_lossy(const char *s);

/* @from: path it was renamed from, or NULL. */
json_t *json_change(const struct change *c, const char *from);

/* Sets @key to [{"path", "what"}, …] and, if some were not kept, @key_more to their number;
 * nothing if there are none. */
void json_set_notes(json_t *o, const char *key, const struct path_notes *n);

/* "t3", or null for 0. */
json_t *json_txn_ref(int64_t id);

/*
 * Strings in objects that only we read again: a JSON string, or {"b64": …} if it is not
 * UTF-8. json_unpack_bytes() returns NULL if @v is neither; to be freed.
 */
json_t *json_pack_bytes(const char *s);
char *json_unpack_bytes(const json_t *v);

/* Appends base64 of @s; the reverse returns -EINVAL for anything but whole, padded
 * base64. */
struct buf;
void base64_encode(struct buf *out, const void *s, size_t len);
int base64_decode(struct buf *out, const char *s);

#endif
