/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_UNOPAQUE_H
#define STET_LAYER_UNOPAQUE_H

#include "layer/layer.h"

/*
 * A directory of an upper that hides all of the host's says "nothing but this". Once a
 * part of it is committed that is no longer true, even if the host had no such directory until
 * then. This turns such marks into deletions of the single names that the host has (none, where it
 * has no directory), which mean the same, and makes that durable. The layer must not be mounted.
 * 0 or -errno: then some mark is left, and no part may be committed; what was done until then does
 * no harm.
 */
int unopaque_layer(const struct change_layer *l);

#endif
