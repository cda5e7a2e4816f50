/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_MOVEDIR_H
#define STET_SYS_MOVEDIR_H

/*
 * rename(2) of directory @sd/@sn to @dd/@dn within one overlay, where the kernel refuses
 * because (a part of) it lies in a lower layer: its contents are renamed one by one into
 * a new directory, which then takes the new name and the old one's owner, mode,
 * times and xattrs. The names are single components. A target that exists must be an empty
 * directory. Returns 0 or the -errno that rename(2) would have given; after
 * a failure everything is where it was.
 */
int movedir(int sd, const char *sn, int dd, const char *dn);

#endif
