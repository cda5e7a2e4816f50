/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_JOURNAL_CREATE_H
#define STET_JOURNAL_CREATE_H

#include "journal/db.h"

/* Makes a new journal.db beside whatever else is in @dir; fine if it is there by now. */
int db_create(const char *dir, const char *path, struct err *e);

#endif
