/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_HISTORY_H
#define STET_PRINT_HISTORY_H

#include "print/show.h"

/* Local time, to the second. */
void show_time(struct buf *b, int64_t ns);

#endif
