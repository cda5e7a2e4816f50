/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_UNSHARE_H
#define STET_LAYER_UNSHARE_H

#include "layer/layer.h"

/*
 * An undo puts what was committed back into the upper. If it has got another name on the host
 * meanwhile (somebody has linked it, or only one of several names was undone), the inode is the
 * host's, too, and whoever writes to it inside writes to the host. So before an upper is written
 * to again, everything in it that has a name outside of it gets an inode of its own; names that
 * are one inode in the upper stay one. The layer must not be mounted. 0 or -errno: then it must
 * not be written to; what was done until then does no harm.
 */
int unshare_layer(const struct change_layer *l);

#endif
