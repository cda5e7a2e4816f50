/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_KEYS_H
#define STET_HOST_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A set of hashes: first all are added, each as often as one likes, then it is asked. Eight bytes
 * each, and never more than twice that. Private to the room.
 */
struct keys {
	uint64_t *v;
	size_t n, cap;
};

void keys_add(struct keys *k, uint64_t key);
void keys_sort(struct keys *k); /* before the first question */
bool keys_has(const struct keys *k, uint64_t key);
void keys_free(struct keys *k); /* empty afterwards */

#endif
