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

/* Extended attributes as one string of bytes; overlayfs' own are left out, and those that
 * it had to escape get their names back. */
int meta_pack(int dirfd, const char *name, struct buf *out);

/* Does an ACL among them name anybody but us? */
bool meta_names_others(const char *packed, size_t len);

/* Makes the extended attributes of @name exactly those of the packed string. */
int meta_unpack(int dirfd, const char *name, const char *packed, size_t len);

/* Of two packed strings: does to @name's attributes what turns @from into @to; those that are
 * alike in both, or in neither, stay as they are. */
int meta_change(int dirfd, const char *name, const char *from, size_t nfrom,
		const char *to, size_t nto);

/* Are those that differ between them all what one of them says? 1, 0 or -errno. */
int meta_is_either(int dirfd, const char *name, const char *one, size_t none,
		   const char *other, size_t nother);

/* Makes @name, which bears a time of change from before now, bear one of now; nothing else of it
 * changes. Where we have no right to that nothing is done. */
int meta_stamp(int dirfd, const char *name);

/* Owner, mode (not of links) and mtime of @name become those of @to; what is right
 * already is not touched. The owner is tried: without the right to it (@lax) it stays, and so
 * does the mtime of what belongs to another: who may write to a directory need not own it. */
int meta_set(int dirfd, const char *name, const struct ident *to, bool lax);

/* The owner alone. A change of it takes capabilities away: attributes come after it. */
int meta_own(int dirfd, const char *name, const struct ident *to, bool lax);

/*
 * Takes off what overlayfs left on a staged object and, if it is a directory, on all
 * beneath; removes whiteouts beneath. *objects is increased by the number looked at,
 * *touched by the number of those that were (or may have been) changed.
 * @gid: group to give to everything that has group @from_gid; (gid_t)-1: none.
 */
int meta_strip(int dirfd, const char *name, unsigned from_gid, unsigned gid,
	       uint64_t *objects, uint64_t *touched);

/*
 * Takes the marks of copied files off ahead of a commit, as far as that goes: they cost more
 * than the exchange does. Directories keep theirs: they mean something.
 */
void meta_unmark(int upper);

/*
 * Notes the mtime of a staged object on it before its contents are touched; fills in @t
 * with the times to be set afterwards, those noted before an interruption if there was one.
 */
int meta_note_mtime(int fd, const struct stat *st, struct timespec t[2]);
int meta_drop_mtime(int fd);

/* Is the staged object a copy of the host's, changed in place (and not a new file)? */
bool meta_is_copy(int dirfd, const char *name);

/*
 * Is the directory @host the one that @upper was copied from? 1, 0, or -1 if that cannot be told:
 * overlayfs left no mark, or it is of another filesystem.
 */
int meta_came_from(int upper, int host);

/* Forgets that the open directory of an upper is a copy, if that can be done. */
void meta_unmark_copy(int fd);

/* Sets or clears the mark by which a directory of an upper hides the host's. */
int meta_set_opaque(int dirfd, const char *name, bool on);
bool meta_is_opaque(int dirfd, const char *name);

#endif
