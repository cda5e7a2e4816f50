/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_SHARED_H
#define STET_PLAN_SHARED_H

#include "plan/apply.h"
#include "plan/parts.h"

/*
 * Before apply_check() and apply_backward(), of each step: if the object has several names,
 * moving this one moves the ctime of them all, and that is no change of somebody else's.
 * @forward: what the step takes away, which apply_forward() notes by itself; else what it has
 * put there.
 */
void apply_note_shared(struct apply *a, const struct plan_rec *r, bool forward);

/* Is it one that apply_note_shared() knows, as it was? Then its ctime may be our doing. */
bool apply_is_shared(struct apply *a, const struct ident *id);

#endif
