/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_PROBE_H
#define STET_DOCTOR_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What this kernel lets this user do, found out by doing it. Every probe returns 0 if the
 * thing works and -errno if not. Whatever changes namespaces, filters or mounts happens
 * in a forked child that is gone when the probe returns; a child that does not answer
 * within seconds is killed and the probe says -ETIMEDOUT. Nothing is left behind.
 *
 * For uid 0 with CAP_SYS_ADMIN the mount probes work in the present user namespace, for
 * everybody else in a new one: that is how the sandbox itself is built.
 */

/* A user namespace with this user mapped to himself; a second one inside the first. */
int probe_userns(void);
int probe_userns_nested(void);

/* A namespace of kind CLONE_NEW* (not NEWUSER), together with a user namespace. */
int probe_namespace(int clone_flag);

/* A mount namespace of our own in which a tmpfs can be mounted. */
int probe_mount(void);

/* A new procfs for a new PID namespace: refused where /proc is partly covered. */
int probe_proc(void);

/* The filesystem type can be opened; the kernel loads its module if it can. */
int probe_fstype(const char *name);

/* Is it listed in /proc/filesystems at present? -ENODEV if not. */
int probe_fstype_listed(const char *name);

/* The mount calls of Linux 5.2 and 5.12. */
int probe_open_tree(void);
int probe_mount_setattr(void);
int probe_fsopen(void);

int probe_pidfd(void);
int probe_close_range(void);
int probe_openat2(void);

/* Filters; the notification of a supervisor, each with one more ability. -EBUSY from the
 * latter: somebody else already supervises this process. */
int probe_seccomp(void);
int probe_notify(void);
int probe_notify_killable(void);
int probe_notify_addfd(void);
int probe_notify_sync_wake(void);
int probe_trace(void); /* PTRACE_SEIZE of a child */

/* ABI version (1 or more), -ENOSYS or -EOPNOTSUPP. */
int probe_landlock(void);

/* What the filesystem under a directory can do; each field 0 or -errno. */
struct probe_fs {
	long magic;	  /* of statfs(2) */
	const char *type; /* static: "ext4", "overlay", …, or "unknown" */
	int write;   /* a directory can be made in it; if not, nothing else was tried */
	int overlay; /* it can hold the upper of a volatile overlay */
	const char *step;	      /* static: what failed of the overlay, or "" */
	int exchange;		      /* renameat2(RENAME_EXCHANGE) */
	int reflink;		      /* FICLONE */
	bool subvolume;		      /* the directory is the root of a btrfs subvolume */
	uint64_t free_bytes;	      /* for this user */
	uint64_t free_inodes, inodes; /* inodes is 0 where there is no limit */
};

/*
 * The present user can mount without a user namespace of his own (uid 0 and
 * CAP_SYS_ADMIN).
 */
bool probe_is_root(void);

/*
 * For the probes' own use. Runs @fn(@arg) in a child and returns what it returned;
 * @arg may point to MAP_SHARED memory to carry more. -ETIMEDOUT, -EINTR (killed by a
 * signal), or the -errno of fork(2).
 */
int probe_in_child(int (*fn)(void *arg), void *arg);

/*
 * Also for the probes: gives the calling (single-threaded) process namespaces of the
 * kinds @flags, with the user mapped to himself if CLONE_NEWUSER is among them and all
 * mounts private if CLONE_NEWNS is. Not to be undone: call it in a child.
 */
int probe_enter(int flags);

#endif
