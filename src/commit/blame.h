/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_BLAME_H
#define STET_COMMIT_BLAME_H

#include "commit/commit.h"

/*
 * Finds out which other transaction has changed the host at these paths, by a commit at or
 * after @since that stands. Sets @by of the first of the notes, to the newest one.
 * Transactions that cannot be read are left out. Private to the room.
 */
void blame_notes(struct home *h, int64_t self, int64_t since, struct path_notes *n);

#endif
