/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_SWAP_H
#define STET_PLAN_SWAP_H

#include "plan/parts.h"

/* Private to the room. */

/*
 * Exchanges the staged object and the host's. On a filesystem without an exchange the host's
 * object gets a second name first and is replaced then: its name is never missing. -EBUSY if
 * another process has put something there in between; then nothing is changed.
 */
int apply_swap(struct apply *a, const struct place *p);

/*
 * A PLAN_DELETE with something to bring instead. If the user has made an object where a
 * deletion was taken back all the same, that object lies in `old`, under the number of the
 * step, while the deleted one is on the host; or the other way round. @now: the host's object.
 */
int apply_trade(struct apply *a, const struct plan_rec *r, const struct place *p,
		const struct ident *now, bool forward, struct err *e);

/*
 * Finishes or forgets an exchange by hand that was interrupted: each object ends in one of its
 * places. -errno.
 */
int apply_resume(struct apply *a, const struct place *p);

#endif
