/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_DIRS_H
#define STET_PLAN_DIRS_H

#include "plan/parts.h"

/* Private to the room. */

/* Steps of these kinds, in either direction: META, MKDIR, DIR (dirs.c), LINK (links.c). */
int apply_meta(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

/* Are the attributes that a META or DIR sets what they were before or after it? ERR_CONFLICT with
 * @what, if they are others. */
int apply_check_attributes(struct apply *a, const struct plan_rec *r,
			   const struct place *p, const struct ident *now,
			   const char *what, struct err *e);
int apply_mkdir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);
int apply_dir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

#endif
