/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_UNDONE_H
#define STET_TXN_UNDONE_H

#include "change/ident.h"
#include "txn/txn.h"

/*
 * What operations that were taken back have put back since a moment, and what redos have put
 * there again: their comings and goings leave new ctimes on objects that are what they were. What
 * others had changed since that moment, before such an operation came, is not among them.
 * Private to the room.
 */
struct undone;

/* Reads nothing yet. */
struct undone *undone_new(struct home *h, int64_t since);
void undone_free(struct undone *u); /* NULL is fine */

/* Is the object at @path one that was put back, and nobody has been at it since? For
 * apply_since(). */
bool undone_put_back(void *undone, const char *path, const struct ident *id);

#endif
