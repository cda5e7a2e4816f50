/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SNAP_PLAN_H
#define STET_SNAP_PLAN_H

#include "base/err.h"
#include "snap/view.h"
#include "sys/mountinfo.h"

/* Private to the room: what view.c, trees.c and hide.c share while a view is made. */
struct plan {
	const struct view_request *rq;
	struct mountinfo mi;
	struct view *v;
	const char *private_dirs[4]; /* NULL-ended */
	const char *last_near;	     /* where the last layer's store was looked for */
	/* Nothing of the host's is seen at or below these; known before any tree is planned. */
	char **veiled;
	size_t nveiled;
	/* Trees that need no layer, since --read-only covers them. */
	char **closed;
	size_t nclosed;
	size_t nshown; /* what plan_show() has planned */
};

/* Appends a step (strings copied). The pointer is good until the next one is added. */
struct step *plan_step(struct plan *p, enum step_kind kind, const char *target,
		       const char *source, uint64_t attrs, const char *why);

/* Appends a layer over @host and the step that shows it. */
int plan_layer(struct plan *p, enum layer_kind kind, const char *host, bool skeleton,
	       uint64_t attrs, const char *why, struct err *e);

/* Is @path a private directory or inside one? */
bool plan_is_private(const struct plan *p, const char *path);

#endif
