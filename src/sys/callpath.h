/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_CALLPATH_H
#define STET_SYS_CALLPATH_H

#include <linux/limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Path names in a system call in which another process waits, found as the kernel would find them
 * for that process: below its root directory, from its working directory or its descriptors.
 *
 * Magic links of /proc are never followed for it: followed by us, /proc/self/fd/3 would be our
 * descriptor, and a link to it may stand anywhere on the way. Only /proc/self, /proc/thread-self
 * and /dev/fd at the very beginning of a name are understood: their fd/N, cwd, root and exe are
 * fetched from the caller. Whatever is found was reachable for the caller by itself, but for the
 * permissions: who acts on the result does so with the caller's rights (sys/fsuid.h).
 *
 *	callpath_start()	with rights over the caller (ptrace access)
 *	callpath_hold()		the same, if it gives them up next
 *	callpath_open(), ...	with the caller's own rights, as often as needed
 *	callpath_end()
 *
 * The caller may go, and another process get its number. Whoever looks asks afterwards whether the
 * call is still waiting (unotify_valid()).
 */
struct callpath {
	pid_t pid;
	int root; /* the caller's root directory; -1: not opened yet */
	int base; /* where @rest begins; -1: at the root */
	char rest[PATH_MAX];
};
#define CALLPATH_NONE        \
	{                    \
		0, -1, -1,   \
		{            \
			'\0' \
		}            \
	}

/*
 * @dirfd: AT_FDCWD, or a descriptor of the caller's. Returns 0 or -errno; callpath_end() is due
 * in both cases.
 */
int callpath_start(struct callpath *p, pid_t pid, int dirfd, const char *path);
/* Opens the caller's root directory, too: for who has no rights over the caller afterwards. */
int callpath_hold(struct callpath *p);
void callpath_end(struct callpath *p);

/*
 * What the path names, with O_PATH and @flags (O_DIRECTORY, O_NOFOLLOW). A descriptor to be closed,
 * or the -errno that the kernel would have for the caller, or one of these, where only the
 * kernel can tell: -ELOOP (a magic link is on the way), -EXDEV, -EAGAIN, -ENAMETOOLONG.
 */
int callpath_open(struct callpath *p, int flags);

/*
 * The directory that holds the last component, and that component, of NAME_MAX + 1 bytes.
 * -EXDEV, too, if the path has no last component of its own ("..", "/", "/proc/self/fd/3").
 */
int callpath_open_parent(struct callpath *p, char *name);

/*
 * Is it certain that the path names nothing? So it is if the last directory on the way that exists
 * has no entry of the next name, and is no part of /proc, which shows each process itself.
 */
bool callpath_is_absent(struct callpath *p);

#endif
