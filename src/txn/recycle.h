/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_RECYCLE_H
#define STET_TXN_RECYCLE_H

#include "txn/parts.h"

/* Private to the room. */

/* Appends the letter of a layer: of which kind it is, and whether it lies @here, in this store. */
void recycle_shape(struct buf *shape, enum layer_kind kind, bool here);

/*
 * Renames the kept directory of that shape, in the store of @dir, to @dir. -ENOENT: there is
 * none.
 */
int recycle_take(const char *dir, const char *shape);

/*
 * Keeps @dir for the next transaction of that shape. False, and @dir stays, if @dir is not
 * clean or another one is kept already.
 */
bool recycle_keep(const char *dir, const char *shape);

#endif
