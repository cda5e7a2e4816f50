/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_EMULATE_VIEWMOUNTS_H
#define STET_EMULATE_VIEWMOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * The overlay mounts of the view, as the command's mount namespace has them, noted before the
 * command runs. Only below these does PID 1 act for a process inside. A mount that the inside
 * makes for itself is none of them. The mount of an object is asked of the descriptor that is
 * then used.
 *
 * The kernel reuses mount numbers. The mounts noted here stay: all but the first are locked to
 * the one below, also when root inside detaches the whole tree, and a descriptor of the first
 * one is held.
 */
struct viewmounts {
	int root; /* O_PATH: the command's root directory */
	uint64_t root_mount;
	struct stat root_is;
	uint64_t *v; /* numbers of the overlays, in ascending order */
	size_t n;
	struct stat users, processes; /* its user namespace; PID 1's process namespace */
};

/*
 * Notes the mounts. @pid is the command's process, which still runs our code, in its last
 * namespaces and with its last root. 0 or -errno.
 */
int viewmounts_note(struct viewmounts *m, pid_t pid);

/* Does @fd lie in one of the mounts? *mount is its number. */
bool viewmounts_has(const struct viewmounts *m, int fd, uint64_t *mount);

/* Is @fd the root directory that the command has? */
bool viewmounts_is_root(const struct viewmounts *m, int fd);

/* Has @pid its capabilities in the command's user namespace? */
bool viewmounts_users(const struct viewmounts *m, pid_t pid);

/* Does pid @target, as @caller sees it, mean a process of ours? */
bool viewmounts_is_ours(const struct viewmounts *m, pid_t caller, pid_t target);

#endif
