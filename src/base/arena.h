/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_BASE_ARENA_H
#define STET_BASE_ARENA_H

#include <stddef.h>

/*
 * Memory for one question: all that is allocated on the way to the answer is freed
 * together. A zeroed arena is empty. The memory is zeroed, and aligned for any type.
 */
struct arena_block;
struct arena {
	struct arena_block *top;
};

void *arena_take(struct arena *a, size_t n);
char *arena_str(struct arena *a, const char *s, size_t len); /* with a NUL behind it */
char *arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void arena_free(struct arena *a);

/* An array of @n elements of @size bytes with room for one more: *cap grows as needed. */
void *arena_more(struct arena *a, void *array, size_t n, size_t *cap, size_t size);

#define ARENA_PUSH(a, array, n, cap)                                        \
	((array) = arena_more((a), (array), (n), &(cap), sizeof(*(array))), \
	 &(array)[(n)++])

#endif
