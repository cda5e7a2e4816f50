/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_STATE_H
#define STET_CKPT_STATE_H

#include "ckpt/ckpt.h"
#include "ckpt/parts.h"

bool ck_is_whiteout(const struct ck_entry *e);

/* A new entry with one reference; the texts are copied. */
struct ck_entry *ck_entry_new(const struct ck_entry *from);
struct ck_entry *ck_ref(struct ck_entry *e);
void ck_unref(struct ck_entry *e);

/* Are both the same object with the same attributes, whichever inode holds it? */
bool ck_same(const struct ck_entry *a, const struct ck_entry *b);

void ck_state_add(struct ck_state *s, struct ck_entry *e); /* takes the reference over */
void ck_state_sort(struct ck_state *s);
void ck_state_free(struct ck_state *s);
struct ck_entry *ck_find(const struct ck_state *s, uint32_t layer, const char *rel);
int ck_order(uint32_t layer_a, const char *a, uint32_t layer_b, const char *b);

/* Is the path, or one above it, hidden from the inside, or a store of ours? */
bool ck_hidden(const struct ck_layer *l, const char *rel);

/* Sets the error "cannot @what PATH: reason" for a path of a layer. */
int ck_fail(const struct ck_layer *l, const char *rel, int r, const char *what,
	    struct err *e);

#endif
