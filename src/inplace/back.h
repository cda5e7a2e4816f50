/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_INPLACE_BACK_H
#define STET_INPLACE_BACK_H

#include "inplace/inplace.h"

int txn_give_up(struct home *h, struct txn *t, struct give_up *g, struct err *e);

#endif
