/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_INPLACE_NESTED_H
#define STET_INPLACE_NESTED_H

#include <stdbool.h>

#include "base/err.h"
#include "journal/journal.h"

/* Private to the room. */

/* Is @rel the top of a store of stet's that was hidden from the command? */
bool inplace_is_store(const struct txn_record *r, const char *rel);

/*
 * Fails with ERR_UNSUPPORTED if a subvolume is nested in @dir, whose descriptor is @fd, where the
 * command could reach it. The command reaches neither stores, nor paths in @closed (NULL-ended or
 * NULL), nor paths that were --read-only in @r (NULL: the transaction is not prepared yet).
 */
int nested_refuse(int fd, const char *dir, char *const *closed,
		  const struct txn_record *r, struct err *e);

#endif
