/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SYS_FS_H
#define STET_SYS_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct buf;

/*
 * Looking at trees that somebody else controls: everything is relative to a descriptor,
 * no symbolic link is ever followed, nothing blocks. All return 0 (or a descriptor), or
 * -errno.
 */

/*
 * Opens @rel (relative, no "..", any length: PATH_MAX does not hold) beneath @dirfd. No
 * component may be a link, the last included unless @flags hold O_PATH|O_NOFOLLOW.
 * O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK and O_NOCTTY are added.
 */
int fs_open_beneath(int dirfd, const char *rel, int flags);

/*
 * Opens an absolute path from our own root directory, where others may have put links. Magic
 * links of /proc, which would be our own, are never followed, others only with @links.
 */
int fs_open_view(const char *path, int flags, bool links);

/*
 * Opens @name, one component, for reading, without touching its atime where the kernel
 * allows that. The caller checks what it got: a FIFO may have taken a file's place.
 */
int fs_open_read(int dirfd, const char *name);

/* Opens the directory @name, one component, but fails with -EXDEV if it is a mount point. */
int fs_open_dir_here(int dirfd, const char *name, int flags);

/* Opens the directory that holds @rel's last component; *base points into @rel. */
int fs_open_parent(int dirfd, const char *rel, const char **base);

/* Target of the symbolic link @name, as long as it is; replaces what @out held. */
int fs_readlink(int dirfd, const char *name, struct buf *out);

/* The names in a directory, without "." and "..", in byte order. */
struct fs_names {
	char *data;
	const char **v;
	size_t n;
};

/* Reads all names; @dirfd is a freshly opened directory. Nothing to free on failure. */
int fs_names_read(int dirfd, struct fs_names *out);
void fs_names_free(struct fs_names *names);

/* How many names there are in the directory @dirfd, which is read from its beginning; no more than
 * a few are counted. Cheaper than to read them. */
enum { FS_FEW = 16 };
int fs_count_few(int dirfd, size_t *n);

/*
 * Names of the extended attributes of @name (NUL after each) and the value of one. What
 * @out held is replaced. A filesystem without attributes has an empty list. fs_xattr_get()
 * fails with -ENODATA if there is no such attribute.
 */
int fs_xattr_list(int dirfd, const char *name, struct buf *out);
int fs_xattr_get(int dirfd, const char *name, const char *attr, struct buf *out);

/* The same for any descriptor, O_PATH too, by way of /proc/self/fd: works on every kernel. */
int fs_fd_xattr_list(int fd, struct buf *out);
int fs_fd_xattr_get(int fd, const char *attr, struct buf *out);

/* A file without a name in @dir, for reading and writing; where the filesystem has none such, with
 * one that goes at once. */
int fs_open_nameless(int dirfd, const char *dir);

/* How many bytes of files, of everybody's and on all filesystems, wait to be written; UINT64_MAX
 * if that is not known. */
uint64_t fs_unwritten(void);

#endif
