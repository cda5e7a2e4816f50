/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_EXT4_H
#define STET_SYS_EXT4_H

#include <stdbool.h>

/*
 * Without a journal, ext4 does not give out an inode again for minutes after its file was deleted,
 * and looks at one after the other to find one that it may: where many were deleted, each
 * new file takes many times as long. There, and only there, this asks that directories in
 * @dir be laid out apart from each other and from all else. True if that is so now.
 */
bool ext4_spread(const char *dir);

#endif
