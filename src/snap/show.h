/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_SHOW_H
#define STET_SNAP_SHOW_H

#include "snap/plan.h"

/*
 * show.c: the host's directory @path, read-only, with what is mounted below it. Whatever has
 * its own step already is left to that. It is seen through overlays without an upper layer:
 * sockets and FIFOs are not the host's there, nor are locks and leases, whenever they are made.
 */
int plan_show(struct plan *p, const char *path, const char *why, struct err *e);

/* Shows the mounts below @path, in the same way, as far as they can be seen from here. */
int plan_show_mounts(struct plan *p, const char *path, const char *why, struct err *e);

/*
 * Is something mounted at @path that is no directory? Then it is planned: a file is seen read-only,
 * anything else is not the command's to reach.
 */
bool plan_file(struct plan *p, const char *path);

/* Is there a step already whose target is @path itself? */
bool plan_has_step(const struct plan *p, const char *path);

#endif
