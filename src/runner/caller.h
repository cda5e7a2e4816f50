/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_CALLER_H
#define STET_RUNNER_CALLER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Names in a call that somebody inside waits for: what they mean to him. He may go, and another
 * get his number; who looks asks afterwards whether he is still there (unotify_valid()).
 */

/* A caller in a chroot of its own resolves links against another root than we would. */
bool caller_same_root(pid_t pid);

/* Without following a link. */
bool caller_is_directory(pid_t pid, int dirfd, const char *path);

/* The directory above the last component, and that component. */
struct caller_place {
	int dir;
	char name[NAME_MAX + 1];
};

/* Where @path begins: a descriptor to be closed, or -errno. */
int caller_base(pid_t pid, int dirfd, const char *path);
/* From there on, with the rights that are on; cuts @path. p->dir is to be closed. -errno; -EBUSY:
 * it has no last component of its own. */
int caller_find(int base, char *path, struct caller_place *p);

#endif
