/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_PARTS_H
#define STET_CKPT_PARTS_H

#include "base/buf.h"
#include "ckpt/ckpt.h"

/* Private to the room. */

/* Entries as bytes. */
void ck_encode(struct buf *out, const struct ck_entry *e);
/* Steps *p on; false if what is there is no entry. The entry has one reference. */
bool ck_decode(const char **p, const char *end, struct ck_entry **out);

#define CK_OBJECT_NAME 17
void ck_object_name(uint64_t obj, char name[CK_OBJECT_NAME]);

/* "cannot … PATH: reason" about a path of a layer. */
int ck_fail(const struct ck_layer *l, const char *rel, int r, const char *what,
	    struct err *e);

/* fs_open_parent() that makes directories accessible; fd or -errno. */
int ck_open_parent(int root, const char *rel, const char **base);

/* The object that holds @e's content: fd, or -errno; its size is @e's. */
int ck_open_object(const struct ck_layer *l, const struct ck_entry *e);

/* Content of object @e->obj into @out, which is empty. */
int ck_copy_out(const struct ck_layer *l, const struct ck_entry *e, int out);

#endif
