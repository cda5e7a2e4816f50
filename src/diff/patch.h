/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_PATCH_H
#define STET_DIFF_PATCH_H

#include "base/buf.h"
#include "diff/change.h"

/*
 * Textual form of one change, in git's extended unified format: header lines
 * (diff --git, old/new mode, new file/deleted file mode, rename from/to, Binary files
 * differ), hunks by libgit2, and comment lines beginning with "# " for what git cannot
 * say (owner, xattrs, device numbers, FIFOs). Names are quoted (base/text.h);
 * content lines are raw: the front end escapes them for a terminal.
 *
 * libgit2 is in a program of its own (git2.h): linked in, its 17 libraries would cost
 * every `stet run` more than the whole sandbox does.
 */
struct patch_stat {
	uint64_t added, removed; /* lines */
	bool binary;
	uint64_t size_before, size_after;
};

/*
 * Appends the text of @c to @out. @from: the deleted side of a rename, or NULL. @out and
 * @st may be NULL.
 *
 * Names are given relative to @root ("/" if NULL), so that `patch -p1` and `git apply` in
 * that directory find them. Paths outside it begin with "../", which both tools refuse:
 * what belongs elsewhere cannot end up in the wrong file.
 *
 * Modes are true ones in octal (git writes 100644 and 100755 only). Files above 64 MiB
 * or with a NUL in their first 8000 bytes are binary. Comment lines follow the hunks;
 * each holds the name it speaks of. A change of nothing but times gives no text. A file
 * that cannot be read gives a comment line; ERR_UNSUPPORTED if libgit2 is needed and
 * cannot be loaded; ERR_SYSTEM for other failures. @out is as it was after a failure.
 */
int patch_make(const struct change_layer *layers, const struct change *c,
	       const struct change *from, const char *root, struct buf *out,
	       struct patch_stat *st, struct err *e);

/*
 * Appends the line that --name-status prints: letter, tab, name; for a rename "R100", tab,
 * old name, tab, new name. Directories end in "/". @l is the list that @it is in. With
 * @nul every field ends in NUL and names are raw, otherwise quoted.
 */
void patch_name_status(const struct change_list *l, const struct change_item *it,
		       const char *root, bool nul, struct buf *out);

/* Appends @path as it is named in patches made for @root, unquoted. */
void patch_name(const char *path, const char *root, struct buf *out);

#endif
