/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_BTRFS_H
#define STET_SYS_BTRFS_H

#include <stdbool.h>

/* The inode number that the top of every subvolume has, and nothing else in it. */
enum { BTRFS_TOP = 256 };

/* Is the directory @fd the top of a btrfs subvolume? Not: does it lie in one. */
bool btrfs_is_subvolume(int fd);

/*
 * A snapshot of subvolume @source, writable, as @dir/@name. Whoever owns the subvolume may
 * make one. 0 or -errno: -EXDEV if @dir lies on another filesystem.
 */
int btrfs_snapshot(int source, int dir, const char *name);

/* Deletes subvolume @dir/@name at once; 0 or -errno, where only root may do that. */
int btrfs_destroy(int dir, const char *name);

#endif
