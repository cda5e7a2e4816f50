/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_MOUNTINFO_H
#define STET_SYS_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One line of /proc/self/mountinfo, escapes undone. */
struct mountpoint {
	int id, parent;
	dev_t dev;
	char *root;   /* the path within the filesystem that is mounted */
	char *target; /* where */
	char *fstype;
	char *options;	/* the filesystem's own, separated by commas */
	uint64_t attrs; /* MOUNT_ATTR_*: RDONLY, NOSUID, NODEV, NOEXEC, NOATIME, … */
	bool read_only; /* the mount or the whole filesystem */
	bool fixed;	/* the whole filesystem */
	bool visible;	/* not covered by a later mount; filled in by mountinfo_read */
};

struct mountinfo {
	struct mountpoint *v;
	size_t n;
	char *text; /* the strings live in here */
};

/* Reads the calling process' table. -errno; -EBADMSG for a line that is not understood. */
int mountinfo_read(struct mountinfo *mi);
/* The same from text (taken over, freed with the table); visible is true for all. */
int mountinfo_parse(char *text, struct mountinfo *mi);
void mountinfo_free(struct mountinfo *mi);

/* A descriptor by which mountinfo_changed() can tell whether the table has changed since; or
 * -errno, which says that it has not. */
int mountinfo_watch(void);
bool mountinfo_changed(int watch);

/* Was @fd opened in this very mount, and not in one below or above it? */
bool mountinfo_is(const struct mountpoint *m, int fd);

/* The visible mount that holds absolute path @path (by name), or NULL. */
const struct mountpoint *mountinfo_of(const struct mountinfo *mi, const char *path);

#endif
