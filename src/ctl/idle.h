/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CTL_IDLE_H
#define STET_CTL_IDLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "snap/view.h"

/*
 * A layer on another filesystem than the transaction's own directory disappears with that
 * filesystem when the host unmounts it, also in the middle of a run: a container ends, a stick
 * is pulled out. Mostly the command has not used it. For PID 1 the layer is still mounted, so
 * PID 1 can tell whether it holds anything, without keeping the host's mount busy.
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

/*
 * Adds a layer whose upper is mounted now and still empty. Layers on the transaction's own
 * filesystem, or beyond the maximum, are left out.
 */
void idle_layers_add(struct idle_layers *f, const struct view *v, size_t layer);

/* One bit for each layer that holds nothing, by its number in the transaction. */
uint64_t idle_layers_untouched(const struct idle_layers *f);

#endif
