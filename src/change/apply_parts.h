/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CHANGE_APPLY_PARTS_H
#define STET_CHANGE_APPLY_PARTS_H

#include "change/apply.h"

/* Private to the room: what apply.c (the steps) and stage.c (before and after them) share. */

struct roots {
	int host, up, old;
};

struct apply {
	const struct change_layer *layers;
	size_t n;
	struct roots *roots;
	/* The directory of the last step: the next one is mostly in the same. */
	struct buf dir;
	uint32_t layer;
	int host, up;
};

/* Where one step happens. @host or @up may be -1 if that directory does not exist. */
struct place {
	int host, up, old;
	const char *name;
	char slot[24]; /* its name in old/ */
};

/* Finds the place of a step; ERR_CONFLICT if its directory on the host is gone. */
int apply_at(struct apply *a, const struct plan_rec *r, struct place *p, struct err *e);

/* Errors that name the path. */
int apply_failed(const struct apply *a, const struct plan_rec *r, int err, struct err *e);
int apply_conflict(const struct apply *a, const struct plan_rec *r, const char *what,
		   struct err *e);

#endif
