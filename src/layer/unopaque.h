/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_UNOPAQUE_H
#define STET_LAYER_UNOPAQUE_H

#include "layer/layer.h"

/*
 * Before a part of a layer is committed. An opaque directory of an upper says that nothing of
 * the host shows below it. Once a part of it is committed that is no longer true, even if the
 * host had no such directory until then. unopaque_layer() replaces such marks by whiteouts for
 * the single names that the host has (none, if it has no directory), which mean the same, and
 * makes that durable. The layer must not be mounted. 0 or -errno: then some mark is left, and
 * no part may be committed; what was replaced until then does no harm.
 */
int unopaque_layer(const struct change_layer *l);

#endif
