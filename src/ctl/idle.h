/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_IDLE_H
#define STET_CTL_IDLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "snap/view.h"

/*
 * A layer that lies on another filesystem than the transaction's own directory goes with it
 * when the host unmounts it, be it in the middle of a run: a container that ends, a stick that is
 * pulled out. Mostly the command has had nothing to do with it. PID 1, for whom it is still
 * mounted, is the one who can tell; it keeps nothing on the host busy.
 */
enum { IDLE_LAYERS_MAX = 64 };

struct idle_layers {
	size_t n;
	struct idle_layer {
		unsigned long
			number; /* as in the name of its directory; less than IDLE_LAYERS_MAX */
		int upper; /* for reading, read-only, the root of a mount that is nowhere else */
		struct stat was;
		ssize_t attrs; /* bytes of their names, then */
	} v[IDLE_LAYERS_MAX];
};

/* Its upper is mounted now, and nothing has come into it yet. Layers that are not far, or too
 * many, are left out. */
void idle_layers_add(struct idle_layers *f, const struct view *v, size_t layer);

/* One bit for each that holds nothing, by its number in the transaction. */
uint64_t idle_layers_untouched(const struct idle_layers *f);

#endif
