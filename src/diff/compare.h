/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_COMPARE_H
#define STET_DIFF_COMPARE_H

#include "base/buf.h"
#include "diff/change.h"

/* Compares one object with another. Private to the room. */
struct object {
	int dir; /* descriptor of its directory */
	const char *name;
	const struct stat *st; /* as fstatat() without following links gave it */
};

/* Memory that is kept from one comparison to the next; all zero at first. */
struct scratch {
	char *block[2];
	struct buf text[4];
};
void scratch_free(struct scratch *s);

#define COMPARE_BLOCK (128u << 10)

/*
 * Sets *what to the differences (enum change_what) between two objects of the same type. A
 * file whose content or user attributes cannot be read counts as CHANGE_CONTENT: it was copied
 * up, so it was opened for writing. 0 or -errno; -ENOENT and -ESTALE mean that an object
 * vanished or changed its type meanwhile.
 */
int compare_objects(const struct change_layer *l, const struct object *upper,
		    const struct object *host, struct scratch *s, unsigned *what);

/*
 * Is the content of two files of @size bytes, or the target of two links, the same?
 * Returns 1, 0 or -errno.
 */
int compare_content(const struct object *a, const struct object *b, struct scratch *s);

/*
 * Compares the extended attributes that count: the user's, ACLs, capabilities. Calls @fn for
 * each that was added ('+'), removed ('-') or changed ('~'), under the name that the sandbox
 * knows it by; with @fn NULL it stops at the first. @host may be NULL: all are added. 1 if
 * there is no difference, 0, or -errno.
 */
typedef void compare_xattr_fn(void *arg, char how, const char *attr);
int compare_xattrs(const struct object *upper, const struct object *host,
		   struct scratch *s, compare_xattr_fn *fn, void *arg);

/* Did the upper object of the last comparison (no link, no error) have this attribute? */
bool compare_listed(const struct scratch *s, const char *attr);
/* Did the upper object of the last comparison have no attributes at all? */
bool compare_bare(const struct scratch *s);

/* Is the owner the same, as far as the sandbox could keep it? */
bool compare_owner(const struct change_layer *l, const struct stat *upper,
		   const struct stat *host);

/* Opens a regular file for reading. -ESTALE if it is no regular file any more. */
int compare_open(int dir, const char *name);

#endif
