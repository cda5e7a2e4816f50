/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_DRAFT_LINKS_H
#define STET_COMMIT_DRAFT_LINKS_H

#include "commit/draft_parts.h"

/* Private to the room. */

/* The steps at names of inodes with several, when the walk is over. */
int draft_links(struct draft *d, struct err *e);

#endif
