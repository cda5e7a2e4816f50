/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_BUF_H
#define STET_BASE_BUF_H

#include <stddef.h>

/*
 * A growing byte string, always NUL-terminated once anything was added (data may be
 * NULL before that; buf_str() never returns NULL). Running out of memory aborts: every
 * caller is a short-lived command that could do nothing better.
 */
struct buf {
	char *data;
	size_t len;
	size_t cap;
};

#define BUF_INIT           \
	{                  \
		NULL, 0, 0 \
	}
#define AUTO_BUF __attribute__((cleanup(buf_free)))

void buf_free(struct buf *b);
void buf_reset(struct buf *b); /* length 0, memory kept */
void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_truncate(struct buf *b, size_t len); /* len <= b->len */
const char *buf_str(const struct buf *b);

/* The string, to be freed by the caller; the buffer is empty afterwards. */
char *buf_take(struct buf *b);

/* malloc family that aborts instead of returning NULL. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
