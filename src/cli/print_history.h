/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CLI_PRINT_HISTORY_H
#define STET_CLI_PRINT_HISTORY_H

#include "cli/show.h"

/* Local time, to the second. */
void show_time(struct buf *b, int64_t ns);

#endif
