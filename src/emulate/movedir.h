/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_EMULATE_MOVEDIR_H
#define STET_EMULATE_MOVEDIR_H

#include "sys/fsuid.h"

/*
 * rename(2) of directory @sd/@sn to @dd/@dn within one overlay, where the kernel refuses
 * because (a part of) it lies in a lower layer: its contents are renamed one by one into
 * a new directory, which then takes the new name and the old one's owner, mode,
 * times and xattrs. The names are single components. A target that exists must be an empty
 * directory.
 *
 * @g is on before and after. What rename(2) asks of the caller is asked of @g; what is inside
 * of the directory then moves with our own rights, as it does for the kernel. Returns 0 or the
 * -errno that rename(2) would have given: -EXDEV, too, for what only a copy could do. After a
 * failure everything is where it was.
 */
int movedir(int sd, const char *sn, int dd, const char *dn, const struct fsuid *g);

/*
 * renameat2(RENAME_EXCHANGE) of two names where at least one is such a directory: three
 * renames, by way of a name beside the second. For a moment a name is missing, which never
 * happens in the kernel's own exchange.
 */
int movedir_exchange(int sd, const char *sn, int dd, const char *dn,
		     const struct fsuid *g);

#endif
