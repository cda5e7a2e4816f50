/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_MOUNT_H
#define STET_SYS_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The mount interface of the kernel in the few shapes we need. Targets and sources are
 * descriptors (O_PATH is enough), so that nobody can exchange a component in between.
 * All return -errno. Only for use in a mount namespace of our own.
 */

/* A detached clone of the tree at @path below @dirfd, with @attrs added. -> fd. */
int mount_clone(int dirfd, const char *path, bool recursive, uint64_t attrs);

/* A new instance of a filesystem type; @opts is a NULL-ended list key, value, key, value
 * (value "" = flag). On failure @why (if not NULL) gets the kernel's own words. -> fd. */
int mount_new(const char *fstype, const char *const *opts, uint64_t attrs, char *why,
	      size_t whylen);

/* Makes the mount at @fd, and no other, read-only. */
int mount_close(int fd);

/* Leaves the tmpfs at @fd room for @bytes more than it holds. */
int mount_bound(int fd, uint64_t bytes);

/* Puts the detached mount @fd on @target. */
int mount_attach(int fd, int target);

struct overlay_spec {
	int lower[3];	 /* topmost first; -1 ends the list */
	int upper, work; /* -1: none, and two lowers at least */
	uint64_t attrs;
};
/* A volatile overlay with user xattrs, no redirects, no index. -> detached mount fd. */
int mount_overlay(const struct overlay_spec *o, char *why, size_t whylen);

/* Makes the present root the tree at @newroot (a mount point) and forgets the old one. */
int mount_pivot(int newroot);

#endif
