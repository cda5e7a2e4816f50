/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_TABLE_H
#define STET_HOST_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Records of one size, by key. A few thousand are kept in memory. Of more, there is only where
 * each one is: 8 bytes, in a table that is never less than a third full. The records are in a
 * file without a name then, which is gone when the process is. Private to the room.
 */
struct table;

/* @dir: where such a file may be; not O_PATH, must outlive the table. -1: all stay in memory. */
struct table *table_new(int dir, size_t size);
void table_free(struct table *t); /* NULL is fine */

size_t table_count(const struct table *t);

/* 1: *rec is what was put there last; 0: nothing was; -1: it cannot be read. */
int table_get(const struct table *t, uint64_t key, void *rec, struct err *e);

/* In place of what was there. If it fails (the disk is full), what the table has under @key is
 * worth nothing any more; the others are what they were. */
int table_put(struct table *t, uint64_t key, const void *rec, struct err *e);

#endif
