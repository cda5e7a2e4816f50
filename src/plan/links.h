/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_LINKS_H
#define STET_PLAN_LINKS_H

#include "plan/parts.h"

/* Private to the room. */

/* Is the name free for a PLAN_LINK, or taken by the link that the step has made? */
int apply_check_link(struct apply *a, const struct plan_rec *r, const struct place *p,
		     bool forward, struct err *e);
int apply_link(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

/*
 * For PLAN_LINKED (nothing for other steps): can the link that takes the place be made?
 * apply_make_name() makes it, apply_drop_name() removes it when it is back.
 */
int apply_check_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		     struct err *e);
int apply_make_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e);
int apply_drop_name(struct apply *a, const struct plan_rec *r, const struct place *p,
		    struct err *e);

#endif
