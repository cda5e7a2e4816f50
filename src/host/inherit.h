/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_INHERIT_H
#define STET_HOST_INHERIT_H

#include "host/known.h"

/* Does the operation say what is on the host? *undone: that is what was there before it. */
bool known_tells(const struct op_record *r, bool *undone);

/*
 * Gives a digest (plan/content.h) of the extended attributes that a directory has after the step @r
 * of such an operation; false if @r says nothing of them. @digests: @r comes from a list that was
 * handed down to a fork, which holds the digest itself.
 */
bool known_attrs(const struct plan_rec *r, bool undone, bool digests, uint64_t *out);

/*
 * @to begins with the state of @from. So it gets what @from knows of the host, and until when
 * @from itself has moved each path. Afterwards each goes its own way. What cannot be kept is not
 * known: a commit is stricter then.
 */
void known_inherit(struct home *h, const struct txn_record *from,
		   const struct txn_record *to);

#endif
