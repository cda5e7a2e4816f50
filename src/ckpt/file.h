/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_FILE_H
#define STET_CKPT_FILE_H

#include "ckpt/ckpt.h"
#include "ckpt/parts.h"

/*
 * Writes a state as a file in @dir: the difference to its parent. The file is replaced as a
 * whole.
 */
int ck_save(int dir, int64_t number, int64_t parent, const struct ck_state *before,
	    const struct ck_state *now, struct err *e);

/*
 * Reads a state and its parents. Number 0 has no file unless the layers were not empty at
 * first.
 */
int ck_load(int dir, int64_t number, struct ck_state *out, struct err *e);

int ck_remove(int dir, int64_t number);

/* Appends the numbers of all objects in the file itself; a missing file is no error. */
int ck_objects(int dir, int64_t number, uint64_t **v, size_t *n, struct err *e);

/* Appends an entry as bytes. */
void ck_encode(struct buf *out, const struct ck_entry *e);

/*
 * Reads an entry and moves *p behind it; false if there is no valid entry. The entry has one
 * reference.
 */
bool ck_decode(const char **p, const char *end, struct ck_entry **out);

#endif
