/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CHANGE_UNFOLD_H
#define STET_CHANGE_UNFOLD_H

#include "change/change.h"

/*
 * A directory of an upper that hides all of the host's says "nothing but this". Once a
 * part of it is committed that is no longer true. This turns such marks into deletions of
 * the single names, which mean the same. The layer must not be mounted. 0 or -errno; what was
 * done until then does no harm.
 */
int unfold_layer(const struct change_layer *l);

#endif
