/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_RMTREE_H
#define STET_SYS_RMTREE_H

#include <stdint.h>

/*
 * Deletes @name, one component in @dirfd, with everything beneath it, whoever filled it:
 * no link is followed, no mount point crossed, directories are made accessible where
 * their owner may do so, depth costs no descriptors (32 and a few at most).
 *
 * What cannot be deleted is left, with the directories that hold it, and the rest is
 * deleted all the same; the first error is returned as -errno (-EXDEV: a mount point,
 * -ENOENT: there is no @name). *@bytes, if not NULL, is set to the disk space freed, a
 * file with other names left not counted.
 */
int rmtree_at(int dirfd, const char *name, uint64_t *bytes);

#endif
