/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { BLOCK = 8192, ALIGN = 16 };

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(ALIGN) char data[];
};

void *arena_take(struct arena *a, size_t n)
{
	struct arena_block *b = a->top;
	void *p;

	n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!b || b->size - b->used < n) {
		size_t size = n > BLOCK ? n : BLOCK;

		b = xmalloc(sizeof(*b) + size);
		b->next = a->top;
		b->used = 0;
		b->size = size;
		a->top = b;
	}
	p = b->data + b->used;
	b->used += n;
	memset(p, 0, n);
	return p;
}

char *arena_str(struct arena *a, const char *s, size_t len)
{
	char *p = arena_take(a, len + 1);

	if (len)
		memcpy(p, s, len);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	char *p;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	p = arena_take(a, (size_t)(n < 0 ? 0 : n) + 1);
	vsnprintf(p, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return p;
}

void *arena_more(struct arena *a, void *array, size_t n, size_t *cap, size_t size)
{
	void *bigger;

	if (n < *cap)
		return array;
	*cap = *cap ? *cap * 2 : 8;
	bigger = arena_take(a, *cap * size);
	if (n)
		memcpy(bigger, array, n * size);
	return bigger;
}

void arena_free(struct arena *a)
{
	while (a->top) {
		struct arena_block *b = a->top;

		a->top = b->next;
		free(b);
	}
}
