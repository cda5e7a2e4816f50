/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_PUT_BACK_H
#define STET_HOST_PUT_BACK_H

#include "layer/ident.h"
#include "txn/txn.h"

/*
 * Objects that undone operations have put back since a moment, and that redos have put there
 * again: they have new ctimes without a change. Objects that others had changed since that
 * moment, before such an operation, are not among them. Private to the room.
 */
struct put_back;

/* Reads nothing yet. */
struct put_back *put_back_new(struct home *h, int64_t since);
void put_back_free(struct put_back *u); /* NULL is fine */

/* For several moments; to begin with all zero. */
struct put_backs {
	struct put_back **v;
	size_t n;
};
struct put_back *put_backs_since(struct put_backs *all, struct home *h, int64_t since);
void put_backs_free(struct put_backs *all);

/* Is the object at @path one that was put back, and nobody has been at it since? For
 * apply_since(). With "" all is read, for one who must not use the journal when it asks. */
bool put_back_has(void *undone, const char *path, const struct ident *id);

#endif
