/* SPDX-License-Identifier: Apache-2.0 */
#include "host/keys.h"

#include <stdlib.h>

#include "base/buf.h"

/*
 * By their bits, from the highest: in place, and no deeper than a number has bits. qsort(3) makes
 * a copy of them all.
 */
static void sort(uint64_t *v, size_t n, uint64_t bit)
{
	while (n > 1 && bit) {
		size_t low = 0, high = n;

		while (low < high) {
			if (v[low] & bit) {
				uint64_t swap = v[--high];

				v[high] = v[low];
				v[low] = swap;
			} else {
				low++;
			}
		}
		bit >>= 1;
		sort(v, low, bit);
		v += low;
		n -= low;
	}
}

void keys_sort(struct keys *k)
{
	size_t n = 0;

	sort(k->v, k->n, UINT64_C(1) << 63);
	for (size_t i = 0; i < k->n; i++)
		if (!n || k->v[n - 1] != k->v[i])
			k->v[n++] = k->v[i];
	k->n = n;
}

/* Each operation has the same paths again: those are dropped before it grows. */
void keys_add(struct keys *k, uint64_t key)
{
	if (k->n == k->cap) {
		keys_sort(k);
		if (4 * k->n >= 3 * k->cap) {
			k->cap = k->cap ? 2 * k->cap : 16;
			k->v = xrealloc(k->v, k->cap * sizeof(*k->v));
		}
	}
	k->v[k->n++] = key;
}

bool keys_has(const struct keys *k, uint64_t key)
{
	size_t low = 0, high = k->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->v[mid] == key)
			return true;
		if (k->v[mid] < key)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

void keys_free(struct keys *k)
{
	free(k->v);
	*k = (struct keys){ 0 };
}
