/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_HIDE_H
#define STET_SNAP_HIDE_H

#include "snap/plan.h"

/* hide.c: fills in @veiled. */
void plan_veil(struct plan *p);

/* Is @path to be hidden, by itself or with a directory around it? */
bool plan_is_veiled(const struct plan *p, const char *path);

/* hide.c: stores, aliases of stores, what the user wants hidden. */
int plan_hidden(struct plan *p, struct err *e);

#endif
