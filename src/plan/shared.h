/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_SHARED_H
#define STET_PLAN_SHARED_H

#include "plan/apply.h"
#include "plan/parts.h"

/*
 * Call it for each step before apply_check() and apply_backward(). If the object has several
 * names, moving one moves the ctime of all, which is no change of somebody else. @forward: the
 * object that the step takes away, which apply_forward() notes by itself; else the object that
 * it has put there.
 */
void apply_note_shared(struct apply *a, const struct plan_rec *r, bool forward);

/*
 * Is @id an object that apply_note_shared() was told of, unchanged? Then its ctime may be our
 * doing.
 */
bool apply_is_shared(struct apply *a, const struct ident *id);

#endif
