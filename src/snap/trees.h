/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_TREES_H
#define STET_SNAP_TREES_H

#include "snap/plan.h"

/* trees.c: overlays and binds for what is on the disk. */
int plan_trees(struct plan *p, struct err *e);

/*
 * trees.c: the bind of a written-through @path shows the mounts below it as well. Masks those
 * that are windows, and makes other filesystems of the kernel read-only. A mount that has a
 * step is left alone.
 */
int plan_written(struct plan *p, const char *path, struct err *e);

/* trees.c: what of a mount's attributes holds inside, too. */
uint64_t plan_attrs(const struct mountpoint *m);

/* Made anew inside, with all that is mounted beneath: /proc, /dev, /sys? */
bool plan_is_remade(const char *path);

/* Would it show the host's processes, terminals or devices wherever it is mounted? */
bool plan_is_window(const struct mountpoint *m);

/* Has its server gone (a stale sshfs)? */
bool plan_is_dead(const struct mountpoint *m);

#endif
