/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_LAYER_META_H
#define STET_LAYER_META_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "layer/ident.h"

/*
 * Attributes of one object, read and set without following links. All return 0 or -errno.
 */

/*
 * Packs the extended attributes into one string of bytes, sorted by name: equal attributes give
 * equal strings. Marks of overlayfs are left out; attributes that overlayfs had to escape get their
 * own names back.
 */
int meta_pack(int dirfd, const char *name, struct buf *out);

/* Does an ACL in the packed string name any user or group but ours? */
bool meta_names_others(const char *packed, size_t len);

/* Makes the extended attributes of @name exactly those of the packed string. */
int meta_unpack(int dirfd, const char *name, const char *packed, size_t len);

/*
 * Changes the attributes of @name as @from was changed to @to: attributes that are equal in
 * both packed strings, or missing in both, stay as they are.
 */
int meta_change(int dirfd, const char *name, const char *from, size_t nfrom,
		const char *to, size_t nto);

/*
 * Has @name, for every attribute that differs between the packed strings, the value that @one
 * or the value that @other has? 1, 0 or -errno.
 */
int meta_is_either(int dirfd, const char *name, const char *one, size_t none,
		   const char *other, size_t nother);

/* Of packed strings: adds to @out what @now becomes if the changes from @from to @to are made
 * to it. */
void meta_turn(const struct buf *now, const char *from, size_t nfrom, const char *to,
	       size_t nto, struct buf *out);

/*
 * @now is packed from a directory in the directory @parent. Is each of its attributes also in
 * @known, with the same value, or one that a new directory inherits from the default ACL of
 * @parent?
 */
bool meta_is_plain(int parent, const struct buf *now, const char *known, size_t nknown);

/*
 * Gives @name a ctime of now; nothing else changes. Without the right to do that nothing is
 * done.
 */
int meta_stamp(int dirfd, const char *name);

/*
 * Sets the owner, the mode (not of links) and the mtime of @name to those of @to; a value that
 * is right already is not touched. @lax: if the owner cannot be set it stays, and so does the
 * mtime of an object that belongs to another user, since a user who may write to a directory
 * need not own it.
 */
int meta_set(int dirfd, const char *name, const struct ident *to, bool lax);

/* Sets the owner only. That removes capabilities, so attributes are set after it. */
int meta_own(int dirfd, const char *name, const struct ident *to, bool lax);

/*
 * Takes the marks of overlayfs off a staged object and, if it is a directory, off everything
 * beneath; removes whiteouts beneath. *objects is increased by the number of objects looked
 * at, *touched by the number of objects that were or may have been changed. @gid: the group
 * for every object that has group @from_gid; (gid_t)-1: none.
 */
int meta_strip(int dirfd, const char *name, unsigned from_gid, unsigned gid,
	       uint64_t *objects, uint64_t *touched);

/*
 * Takes the marks off copied files ahead of a commit, as far as that is possible: that takes
 * longer than the exchange does. Directories keep their marks, which still mean something.
 */
void meta_unmark(int upper);

/*
 * Notes the mtime of a staged object as an attribute of it before its contents are touched.
 * Fills in @t with the times to be set afterwards: those of an earlier, interrupted call if
 * there are any.
 */
int meta_note_mtime(int fd, const struct stat *st, struct timespec t[2]);
int meta_drop_mtime(int fd);

/* Is the staged object a copy of the host's that was changed in place, and not a new file? */
bool meta_is_copy(int dirfd, const char *name);

/*
 * Was the directory @upper copied up from @host? 1, 0, or -1 if that cannot be told: overlayfs
 * left no mark, or the mark is of another filesystem.
 */
int meta_came_from(int upper, int host);

/* Removes the mark that says that the open directory is a copy, if that is possible. */
void meta_unmark_copy(int fd);

/* Sets or clears the mark that makes a directory of an upper opaque. */
int meta_set_opaque(int dirfd, const char *name, bool on);
bool meta_is_opaque(int dirfd, const char *name);

#endif
