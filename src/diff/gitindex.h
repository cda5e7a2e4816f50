/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_GITINDEX_H
#define STET_DIFF_GITINDEX_H

#include <stdbool.h>
#include <stddef.h>

/*
 * git's index is rewritten by commands that change nothing: `git status` notes anew what
 * stat(2) says of the files. Two indexes hold the same if they differ in nothing else.
 */

/* Can this be the path of an index? The content decides. */
bool gitindex_name(const char *path);

/*
 * Calls @fn for the parts of an index that mean something: all but what stat(2) said, what git can
 * work out again, and the checksum. False, and @fn is not called, if it is no index of a
 * known kind.
 */
typedef void gitindex_fn(void *arg, const void *part, size_t len);
bool gitindex_parts(const char *data, size_t len, gitindex_fn *fn, void *arg);

#endif
