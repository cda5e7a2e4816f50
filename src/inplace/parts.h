/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_INPLACE_PARTS_H
#define STET_INPLACE_PARTS_H

#include "inplace/inplace.h"
#include "timeline/parts.h"

/* Private to inplace*.c. Snapshots, in the directory that inplace_open() gives: */
#define BEFORE "snap" /* at the beginning */
#define END "end"     /* when the command had ended; none if nobody saw that */
#define AFTER "after" /* when a rollback began */

/*
 * The directory of the overlay layer that lies over it: its store is on the same filesystem.
 * fd, or -1.
 */
int inplace_open(const struct txn_record *r, struct err *e);
int inplace_snapshot(const struct txn_record *r, const char *name, struct err *e);

#endif
