/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_SWAP_H
#define STET_PLAN_SWAP_H

#include "plan/parts.h"

/* Private to the room. */

/*
 * Exchanges the staged object and the host's. On a filesystem that cannot, the host's gets
 * a second name first and is replaced then: nobody misses it. -EBUSY if somebody else has
 * put something there in between; then nothing is changed.
 */
int apply_swap(struct apply *a, const struct place *p);

/*
 * A PLAN_DELETE that has something to bring instead: what the user had made at the place when the
 * deletion was taken back all the same lies in `old`, under the number of the step, while
 * what was deleted is on the host, and the other way round. @now: what the host has.
 */
int apply_trade(struct apply *a, const struct plan_rec *r, const struct place *p,
		const struct ident *now, bool forward, struct err *e);

/* Finishes or forgets one that was interrupted: each object is in one of its places. -errno. */
int apply_resume(struct apply *a, const struct place *p);

#endif
