/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_MOVE_H
#define STET_SYS_MOVE_H

#include <stdbool.h>

/*
 * renameat2() that gets past directories without write permission; RENAME_NOREPLACE works on
 * every filesystem, RENAME_EXCHANGE where there is one. -errno.
 */
int move_name(int fromdir, const char *from, int todir, const char *to, unsigned flags);

/* Does the error number @err say that the filesystem does not know a flag, or a call? */
bool move_lacks(int err);

#endif
