/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_HOLES_H
#define STET_PLAN_HOLES_H

#include "plan/apply.h"

/*
 * Gives a changed copy of a host's file the holes back that copying up has filled. Updates
 * r->after; a hole that cannot be punched is left.
 */
int apply_holes(struct apply *a, struct plan_rec *r, struct err *e);

#endif
