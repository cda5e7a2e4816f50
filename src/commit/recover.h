/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_RECOVER_H
#define STET_COMMIT_RECOVER_H

#include "commit/commit.h"

/* Finishes or reverses whatever a crash left. *n: how many operations that were. */
int txn_recover(struct home *h, unsigned *n, struct err *e);

/*
 * txn_recover() if there is anything to recover; a single query if there is not. For every
 * verb.
 */
int txn_recover_if_needed(struct home *h, struct err *e);

#endif
