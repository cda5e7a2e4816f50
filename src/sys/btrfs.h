/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_BTRFS_H
#define STET_SYS_BTRFS_H

#include <stdbool.h>

/* The inode number that the top of every subvolume has, and nothing else in it. */
enum { BTRFS_TOP = 256 };

/* The inode number of a stub: the empty directory in a snapshot that stands for a subvolume. */
enum { BTRFS_STUB = 2 };

/* Is the directory @fd the top of a btrfs subvolume? Not: does it lie in one. */
bool btrfs_is_subvolume(int fd);

/*
 * A snapshot of subvolume @source, writable, as @dir/@name. Whoever owns the subvolume may
 * make one. 0 or -errno: -EXDEV if @dir lies on another filesystem.
 */
int btrfs_snapshot(int source, int dir, const char *name);

/*
 * Calls @fn for every subvolume that is nested in @fd, which is the top of a subvolume. @path
 * is relative to @fd, or NULL if this user may not look the path up. @fn may see a subvolume
 * more than once, and sees none that is nested in a nested one. Stops when @fn returns
 * anything but 0, and returns that value; otherwise 0 or -errno.
 */
typedef int btrfs_nested_fn(void *arg, const char *path);
int btrfs_nested(int fd, btrfs_nested_fn *fn, void *arg);

/* Deletes subvolume @dir/@name at once; 0 or -errno, where only root may do that. */
int btrfs_destroy(int dir, const char *name);

#endif
