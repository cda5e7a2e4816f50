/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_BUILD_H
#define STET_RUNNER_BUILD_H

#include "base/err.h"
#include "ctl/idle.h"
#include "snap/view.h"

/*
 * Carries out the steps of a view, in a mount namespace of our own whose mounts are private,
 * with capabilities over it. Stops at the first step that fails: a view is built whole or not
 * at all. Returns a descriptor of the new root, for build_enter(). *main gets a descriptor of
 * the mount of build_main(), or -1; @far gets the layers whose filesystem may be unmounted.
 */
int build_view(const struct view *v, int *main, struct idle_layers *far, struct err *e);

/*
 * Makes @root the root directory of all processes in the namespace and closes it. Meanwhile
 * the kernel makes no user namespaces in there.
 */
int build_enter(int root, struct err *e);

/* Private to the room: state shared by build.c and build_special.c. */
struct build {
	const struct view *v;
	int under; /* the empty directory of the host that the stage is mounted on */
	int stage; /* our tmpfs: holds the new root's mount point and all helper directories */
	int run;  /* the private /run, made read-only at the end; -1: none */
	int base; /* the clone of the host's root that the first step shows, or -errno */
	int root; /* the new root, once its first step is done; -1 before */
	int main; /* the mount of build_main(), once it is made; -1 before */
	struct idle_layers *far;
	unsigned serial;
};

/* Opens the target of a step inside the new root; makes it where it does not exist. */
int build_target(struct build *b, const char *target, bool dir, struct err *e);

/* build_target() for a target that exists; or -errno. */
int build_open(const struct build *b, const char *target);

/* Attaches detached mount @m (closed in any case) at @target. */
int build_attach(struct build *b, int m, const char *target, bool dir, struct err *e);

/* Mounts something empty and unreadable over the target. */
int build_mask(struct build *b, const struct step *s, struct err *e);

/* Mounts a tmpfs at the target. */
int build_tmpfs(struct build *b, const char *target, const char *mode, uint64_t attrs,
		struct err *e);

/*
 * Mounts an empty directory of the stage at the target, from which the rest of the stage
 * cannot be reached. Faster than another tmpfs.
 */
int build_corner(struct build *b, const char *target, const char *name, uint64_t attrs,
		 struct err *e);

#endif
