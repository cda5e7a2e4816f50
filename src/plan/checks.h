/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_CHECKS_H
#define STET_PLAN_CHECKS_H

#include "plan/apply.h"
#include "plan/parts.h"

/*
 * Would the step meet a conflict, as things are? Changes nothing. A step that is done
 * already meets none. What happens between this and the step is the step's to find out.
 */
int apply_check(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

/*
 * For undoing a part, whose places in the upper are empty since: has the transaction something
 * newer where the step would put what was committed? A name, a deletion, another directory around
 * it or none; of a PLAN_DIR, other attributes. 1 or 0; -1: *e is set.
 */
int apply_is_taken(struct apply *a, const struct plan_rec *r, struct err *e);

/*
 * A step of a commit or redo that is to be taken back while the host has gone on from there
 * already: his version stays, and what the step had taken away is kept apart in `old`, so that it
 * is not taken for the transaction's own. Of a step that was never done nothing moves.
 */
int apply_leave(struct apply *a, const struct plan_rec *r, struct err *e);

/*
 * A step that an undo was to take back, and that stays done while the undo itself turns round: what
 * a crash has left on the way back goes to where the step had put it.
 */
int apply_stay(struct apply *a, const struct plan_rec *r, struct err *e);

/* Is what a done step took away still where an undo would look for it? */
bool apply_is_kept(struct apply *a, const struct plan_rec *r, struct err *e);

/* After all steps: did somebody who had it open write to what was taken away? Only ever
 * ERR_CONFLICT. */
int apply_verify(struct apply *a, const struct plan_rec *r, struct err *e);

/* A directory that a step takes away as a whole: is all that it holds what a commit (or, @forward,
 * the undo of that) has put there? */
int apply_whole(struct apply *a, const struct plan_rec *r, const struct place *p,
		const struct ident *now, bool forward, struct err *e);

/* A PLAN_LEAVE (checks.c). */
int apply_left(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

#endif
