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
 * Resolves the paths of a call of the inside that waits for an answer, as the kernel would for
 * the caller (sys/callpath.h), if they lie in the view of the sandbox. The caller may be gone,
 * and another process may have its number: ask unotify_valid() afterwards.
 */

/* Is the object a directory? A link is not followed. */
bool caller_is_directory(const struct viewmounts *m, pid_t pid, int dirfd,
			 const char *path);
/* stat(2) of a path, from the caller's working directory; a link is not followed. */
bool caller_stat(pid_t pid, const char *path, struct stat *st);

/*
 * The last component of a path, and the directory that holds it, which lies in mount @mount of
 * the view.
 */
struct caller_place {
	struct callpath path;
	int dir;
	uint64_t mount;
	char name[NAME_MAX + 1];
};

/*
 * The part that needs rights over the caller: where @path begins, and that the caller's root
 * directory is the command's. caller_end() is due in any case. 0 or -errno; after an error the
 * kernel has to answer the caller.
 */
int caller_start(struct caller_place *p, const struct viewmounts *m, pid_t pid, int dirfd,
		 const char *path);
/* The rest of the path, with the caller's own rights. */
int caller_find(struct caller_place *p, const struct viewmounts *m);
void caller_end(struct caller_place *p);

#endif
