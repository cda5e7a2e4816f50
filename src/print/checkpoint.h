/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PRINT_CHECKPOINT_H
#define STET_PRINT_CHECKPOINT_H

#include "print/print.h"
#include "review/log.h"

/* The checkpoints of a transaction, for stet log. */
int print_timeline(struct console *c, const struct log_res *res);

#endif
