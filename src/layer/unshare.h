/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_UNSHARE_H
#define STET_LAYER_UNSHARE_H

#include "layer/layer.h"

/*
 * Before a layer is written to again. An undo puts the committed objects back into the upper.
 * If such an object has got another name on the host meanwhile (somebody has linked it, or
 * only one of several names was undone), its inode is the host's, too, and a write inside
 * would reach the host. unshare_layer() gives every inode with a name outside of the upper a
 * copy of its own; names that are one inode in the upper stay one. The layer must not be
 * mounted. 0 or -errno: then the layer must not be written to; what was copied until then does
 * no harm.
 */
int unshare_layer(const struct change_layer *l);

#endif
