/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_VERIFY_H
#define STET_COMMIT_VERIFY_H

#include "commit/commit.h"

int txn_verify(struct home *h, check_fn *fn, void *arg, unsigned *checked, struct err *e);

#endif
