/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_EMULATE_CALLER_H
#define STET_EMULATE_CALLER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "emulate/viewmounts.h"
#include "sys/callpath.h"
#include "sys/fsuid.h"

/*
 * Names in a call that somebody inside waits for: what they mean to the caller (sys/callpath.h),
 * if that lies in the sandbox's view. The caller may go, and another process get its number; who
 * looks asks afterwards whether the call still waits (unotify_valid()).
 */

/* Without following a link. */
bool caller_is_directory(const struct viewmounts *m, pid_t pid, int dirfd,
			 const char *path);
/* From the working directory, without following a link. */
bool caller_stat(pid_t pid, const char *path, struct stat *st);

/* A last component, and the directory that holds it, which lies in @mount of the view. */
struct caller_place {
	struct callpath path;
	int dir;
	uint64_t mount;
	char name[NAME_MAX + 1];
};

/*
 * What can be learned only with rights over the caller: where @path begins, and that the caller's
 * root directory is the command's. caller_end() is due in any case. All return 0 or -errno; with
 * each, the kernel is the one to answer the caller.
 */
int caller_start(struct caller_place *p, const struct viewmounts *m, pid_t pid, int dirfd,
		 const char *path);
/* The rest, with the caller's own rights. */
int caller_find(struct caller_place *p, const struct viewmounts *m);
void caller_end(struct caller_place *p);

#endif
