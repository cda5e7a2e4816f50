/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_NS_H
#define STET_SYS_NS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * fork(2) into new namespaces: CLONE_NEW* in @flags. Returns as fork does (-errno on
 * failure); in the parent *pidfd gets a descriptor of the child. Single-threaded callers
 * only.
 */
pid_t ns_fork(unsigned long flags, int *pidfd);

/* The same with the child in the cgroup whose directory is @cgroup. */
pid_t ns_fork_into(unsigned long flags, int *pidfd, int cgroup);

/* In a new user namespace, before anything else: uid and gid map to themselves. */
int ns_map_self(uid_t uid, gid_t gid);

/* Every id of @pid's new user namespace maps to itself. Needs privilege over the parent. */
int ns_map_all(pid_t pid);

/*
 * No cgroup namespaces in the caller's user namespace and below: with one of its own the
 * inside could mount the cgroup tree that it shares with the host. @sysctl: descriptor of
 * /proc/sys/user.
 */
int ns_forbid_cgroup(int sysctl);

/*
 * The right to look into and rearrange the user's own files whatever their mode (a 000
 * directory that a command left behind), by way of a user namespace with an identity
 * map. For good: the process stays in it, and may not give files to its other groups any
 * more. 0 the first time; -EALREADY afterwards; another -errno if that is forbidden here.
 */
int ns_gain_override(void);

bool ns_has_override(void); /* has it been gained? */

/*
 * Runs @fn in a child that has that right, while this process keeps its groups and ids.
 * What it returns is returned: 0, 1 or -errno. -EACCES if this process has the right itself.
 */
int ns_try_override(int (*fn)(void *), void *arg);

/* One rename with that right, by a child. */
int ns_rename_override(int fromdir, const char *from, int todir, const char *to,
		       unsigned flags);

/* The same for an attribute of an object opened with O_PATH; @value NULL takes it away. */
int ns_xattr_override(int fd, const char *attr, const void *value, size_t len);

/*
 * No more than about @n tasks in the PID namespace that we are the first process of: from
 * Linux 6.14 on its numbers have a bound of their own. -EOPNOTSUPP before: there the bound is the
 * whole machine's, and not ours to move.
 */
int ns_limit_pids(uint64_t n);

/* In a new network namespace: its loopback is up, which it is not by itself. */
int ns_loopback_up(void);

/*
 * A table of mounts of our own, with what the caller's has now: what is opened from here on keeps
 * nothing of his busy, and what is mounted nobody else sees. Ordinary users get there by way of a
 * user namespace, in which they are themselves.
 */
int ns_own_mounts(void);

/* A session keyring of our own: the host's keys are not possessed any more. */
int ns_new_keyring(void);

#endif
