/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_FILE_H
#define STET_CKPT_FILE_H

#include "ckpt/ckpt.h"
#include "ckpt/parts.h"

/* A state as a file in @dir: what differs from its parent. Replaced as a whole. */
int ck_save(int dir, int64_t number, int64_t parent, const struct ck_state *before,
	    const struct ck_state *now, struct err *e);

/* Reads it and its parents. 0 has no file unless the layers were not empty at first. */
int ck_load(int dir, int64_t number, struct ck_state *out, struct err *e);

int ck_remove(int dir, int64_t number);

/* Appends the numbers of all objects that the file itself speaks of; none is fine. */
int ck_objects(int dir, int64_t number, uint64_t **v, size_t *n, struct err *e);

/* Entries as bytes. */
void ck_encode(struct buf *out, const struct ck_entry *e);

/* Steps *p on; false if what is there is no entry. The entry has one reference. */
bool ck_decode(const char **p, const char *end, struct ck_entry **out);

#endif
