/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_PARTS_H
#define STET_CKPT_PARTS_H

#include <sys/stat.h>

#include "base/buf.h"
#include "ckpt/ckpt.h"

/* Private to the room. */

/* Entries as bytes. */
void ck_encode(struct buf *out, const struct ck_entry *e);
/* Steps *p on; false if what is there is no entry. The entry has one reference. */
bool ck_decode(const char **p, const char *end, struct ck_entry **out);

/*
 * Objects: contents of files, each under a number. Small ones share a file, the pack of the
 * scan that found them.
 */
#define CK_OBJECT_NAME 17
/* What is packed; from where on sharing blocks is faster than copying them. */
enum { CK_SMALL = 64 * 1024, CK_REFLINK_MIN = 128 * 1024 };
void ck_object_name(uint64_t obj, char name[CK_OBJECT_NAME]); /* of the file it is in */
bool ck_is_packed(uint64_t obj);
int ck_new_number(uint64_t *obj); /* of no content at all */

struct ck_packer {
	int fd; /* -1: none yet */
	uint64_t number;
	uint32_t blocks;
	char *data; /* of the last ones, not written yet */
	size_t n;
};
/*
 * Copies the first @size bytes of @in, of which @st was seen, into a new object below @objects.
 * It is there when the pack was ended. -ESTALE: the file was shortened meanwhile.
 */
int ck_keep(struct ck_packer *p, int objects, int in, const struct stat *st, size_t size,
	    uint64_t *obj);
int ck_end_pack(struct ck_packer *p);
void ck_free_pack(struct ck_packer *p);

/* The pack that was read last: the caller's to close. */
struct ck_opened {
	int fd;
	uint64_t number;
};
/* All of a packed object into @block, which has room for CK_SMALL. 0 or -errno. */
int ck_read_packed(const struct ck_layer *l, const struct ck_entry *e, char *block,
		   struct ck_opened *last);
/* An object that is not packed: fd, or -errno; its size is @e's. */
int ck_open_object(const struct ck_layer *l, const struct ck_entry *e);
/* Either kind, into @out, which is empty. */
int ck_copy_object(const struct ck_layer *l, const struct ck_entry *e, int out);
/* Does @in hold what the object does? 1, 0 or -errno. */
int ck_has_content(const struct ck_layer *l, const struct ck_entry *e, int in);

/* All of it, or -errno. */
int ck_write_at(int fd, const char *data, size_t n, off_t at);

/* "cannot … PATH: reason" about a path of a layer. */
int ck_fail(const struct ck_layer *l, const char *rel, int r, const char *what,
	    struct err *e);

/* fs_open_parent() that makes directories accessible; fd or -errno. */
int ck_open_parent(int root, const char *rel, const char **base);

/* Are there attributes that it should have, besides those that are overlayfs' business? */
bool ck_wants_xattrs(const struct ck_layer *l, const struct ck_entry *e);

/* Content of @e into @out, which is empty: from its object, or from where it lies. */
int ck_copy_out(const struct ck_layer *l, const struct ck_entry *e, int out);

#endif
