/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_DIRS_H
#define STET_PLAN_DIRS_H

#include "plan/parts.h"

/* Private to the room. */

/* Carries out steps of the kinds META, MKDIR and DIR, in either direction. */
int apply_meta(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

/*
 * Are the attributes that a META or DIR sets as they were before or after it? ERR_CONFLICT
 * with @what if not.
 */
int apply_check_attributes(struct apply *a, const struct plan_rec *r,
			   const struct place *p, const struct ident *now,
			   const char *what, struct err *e);
int apply_mkdir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);
int apply_dir(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

#endif
