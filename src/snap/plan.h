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

/* hide.c: fills in @veiled. */
void plan_veil(struct plan *p);
/* Is @path to be hidden, by itself or with a directory around it? */
bool plan_is_veiled(const struct plan *p, const char *path);

/* trees.c: overlays and binds for what is on the disk. */
int plan_trees(struct plan *p, struct err *e);

/* trees.c: what of a mount's attributes holds inside, too. */
uint64_t plan_attrs(const struct mountpoint *m);
/* Made anew inside, with all that is mounted beneath: /proc, /dev, /sys? */
bool plan_is_remade(const char *path);
/* Would it show the host's processes, terminals or devices wherever it is mounted? */
bool plan_is_window(const struct mountpoint *m);
/* Has its server gone (a stale sshfs)? */
bool plan_is_dead(const struct mountpoint *m);

/*
 * show.c: the host's directory @path, read-only, with what is mounted below it. Whatever has
 * its own step already is left to that. It is seen through overlays without an upper layer:
 * sockets and FIFOs are not the host's there, nor are locks and leases, whenever they are made.
 */
int plan_show(struct plan *p, const char *path, const char *why, struct err *e);
/* What is mounted below @path, in the same way, as far as it can be seen from here. */
int plan_show_mounts(struct plan *p, const char *path, const char *why, struct err *e);

/* hide.c: stores, aliases of stores, what the user wants hidden. */
int plan_hidden(struct plan *p, struct err *e);

#endif
