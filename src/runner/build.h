/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_BUILD_H
#define STET_RUNNER_BUILD_H

#include "base/err.h"
#include "ctl/idle.h"
#include "snap/view.h"

/*
 * Carries out a view's steps. Called in a mount namespace of our own whose mounts are
 * private, with capabilities over it. Stops at the first step that fails: a view is built
 * whole or not at all. Returns a descriptor of the new root, for build_enter(). *main gets one
 * of the mount that build_main() makes, or -1; @far the layers that may go away.
 */
int build_view(const struct view *v, int *main, struct idle_layers *far, struct err *e);

/*
 * Makes it the root directory, of everyone in the namespace; @root is closed. While this
 * is at work the kernel makes no user namespaces in there.
 */
int build_enter(int root, struct err *e);

/* Private to the room: state shared by build.c and build_special.c. */
struct build {
	const struct view *v;
	int under; /* the empty directory that it lies on */
	int stage; /* our tmpfs: mount point of the new root, fix layers, skeletons, corners */
	int run;  /* the private /run, closed when all is in it; -1: none */
	int base; /* the clone of the host's root that the first step shows, or -errno */
	int root; /* the new root, once its first step is done; -1 before */
	int main; /* the mount of build_main(), once it is made; -1 before */
	struct idle_layers *far;
	unsigned serial;
};

/* Opens the step's target inside the new root, making it where it does not exist. */
int build_target(struct build *b, const char *target, bool dir, struct err *e);

/* The same for one that is there already; or -errno. */
int build_open(const struct build *b, const char *target);

/* Attaches detached mount @m (closed in any case) at @target. */
int build_attach(struct build *b, int m, const char *target, bool dir, struct err *e);

/* Something empty that nobody may open lies over the target. */
int build_mask(struct build *b, const struct step *s, struct err *e);

/* A tmpfs. */
int build_tmpfs(struct build *b, const char *target, const char *mode, uint64_t attrs,
		struct err *e);

/* A directory of the stage, of which nothing else can be reached through it: half the price. */
int build_corner(struct build *b, const char *target, const char *name, uint64_t attrs,
		 struct err *e);

#endif
