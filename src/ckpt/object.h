/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_OBJECT_H
#define STET_CKPT_OBJECT_H

#include "ckpt/ckpt.h"
#include "ckpt/parts.h"

/* Deletes the objects of @gone that are not among the @n sorted numbers in @used. */
void ck_sweep(const struct ck_layers *layers, const struct ck_state *gone,
	      const uint64_t *used, size_t n);

void ck_object_name(uint64_t obj, char name[CK_OBJECT_NAME]); /* of the file it is in */
bool ck_is_packed(uint64_t obj);

int ck_new_number(uint64_t *obj); /* of no content at all */

/*
 * Copies the first @size bytes of @in, which was @st, into a new object below @objects. The
 * object exists when the pack was ended. -ESTALE: the file has become shorter meanwhile.
 */
int ck_keep(struct ck_packer *p, int objects, int in, const struct stat *st, size_t size,
	    uint64_t *obj);
int ck_end_pack(struct ck_packer *p);
void ck_free_pack(struct ck_packer *p);

/* Reads a packed object into @block, which has room for CK_SMALL. 0 or -errno. */
int ck_read_packed(const struct ck_layer *l, const struct ck_entry *e, char *block,
		   struct ck_opened *last);

/* Opens an object that is not packed: fd, or -errno; @e has its size. */
int ck_open_object(const struct ck_layer *l, const struct ck_entry *e);

/* Copies an object of either kind into @out, which is empty. */
int ck_copy_object(const struct ck_layer *l, const struct ck_entry *e, int out);

/* Has @in the content of the object? 1, 0 or -errno. */
int ck_has_content(const struct ck_layer *l, const struct ck_entry *e, int in);

/* Writes all @n bytes, or -errno. */
int ck_write_at(int fd, const char *data, size_t n, off_t at);

#endif
