/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_LINKS_H
#define STET_PLAN_LINKS_H

#include "plan/parts.h"

/* Private to the room. */

/* Is the name free for a PLAN_LINK of the host's, or taken by what it made? */
int apply_check_link(struct apply *a, const struct plan_rec *r, const struct place *p,
		     bool forward, struct err *e);
int apply_link(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

/* PLAN_LINKED (of others: nothing): can the name that is to take the place be made? Makes it; and
 * takes it away when it is back. */
int apply_check_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		     struct err *e);
int apply_make_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e);
int apply_drop_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e);

#endif
