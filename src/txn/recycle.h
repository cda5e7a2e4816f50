/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TXN_RECYCLE_H
#define STET_TXN_RECYCLE_H

#include "txn/parts.h"

/* Private to the room. */

void recycle_shape(struct buf *shape, enum layer_kind kind, bool here);

/* Makes the spare of that shape beside @dir become @dir. -ENOENT: there is none. */
int recycle_take(const char *dir, const char *shape);

/* Keeps @dir as the spare. False if it is not clean or there is one already: then it stays. */
bool recycle_keep(const char *dir, const char *shape);

#endif
