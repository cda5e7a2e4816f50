/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_PIN_H
#define STET_SNAP_PIN_H

#include "snap/plan.h"

/*
 * Private to the room. pin.c: in a tree that is the host's own, every directory above a mount that
 * keeps something (read-only, or out of sight), and above a mount of the host, becomes a mount
 * itself, so that the kernel refuses to rename it (EBUSY). When all else is planned and sorted.
 */
void plan_pins(struct plan *p);

/* Does @s lie in a tree of the host's own and keep something there? */
bool step_is_pin(const struct view *v, const struct step *s);

#endif
