/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_CHANGE_H
#define STET_DIFF_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "layer/layer.h"

/*
 * Differences between a host tree and the overlay upper that lies over it, computed from
 * the upper alone: the cost follows what was changed, never the size of the tree.
 *
 * The upper is hostile: its names, types, link targets and xattrs were chosen by the
 * sandboxed side. Everything is opened relative to a descriptor, without following
 * links, and never blocks (FIFOs, devices).
 */

enum change_kind {
	CHANGE_ADD = 'A',
	CHANGE_MODIFY = 'M',
	CHANGE_DELETE = 'D',
	CHANGE_TYPE = 'T', /* a file became a link, a directory a file, … */
};

/* What differs (CHANGE_MODIFY only; a bit set). */
enum change_what {
	CHANGE_CONTENT =
		1 << 0, /* bytes of a file, target of a link, number of a device */
	CHANGE_MODE = 1 << 1,
	CHANGE_OWNER = 1 << 2,
	CHANGE_XATTR = 1 << 3, /* user xattrs, ACLs, capabilities */
	CHANGE_TIMES = 1 << 4, /* mtime of anything but a directory */
};

struct change {
	enum change_kind kind;
	unsigned what; /* enum change_what */
	bool implied;  /* below a directory that was itself added, deleted or retyped */
	/*
	 * The path was hidden from the sandbox. CHANGE_ADD: it was made anew there, whatever
	 * the host has (@before says; totals then count it as modified). CHANGE_DELETE: it
	 * would go with a directory around it; what lies below it on the host is not looked
	 * at.
	 */
	bool was_hidden;
	/* The path, or one around it, was read-only. All the same something was made there:
	 * by who has removed what the mount lay on (docs/adr/0026). */
	bool was_closed;
	bool bare; /* CHANGE_MODIFY: a file that has no extended attributes in the upper */
	size_t layer;	  /* index of its layer */
	const char *path; /* absolute host path */
	const char
		*rel; /* the same relative to the layer's host; never empty or absolute */
	struct stat before; /* host; st_mode == 0 if there is none */
	struct stat after;  /* upper; st_mode == 0 if there is none */
};

/* @c and what it points to live until the function returns. Return 0 to go on; -1 with
 * *e set (or a positive number) to stop: change_walk() then returns just that. */
typedef int change_fn(void *arg, const struct change *c, struct err *e);

/*
 * Calls @fn once per difference, directory by directory, names in byte order, a directory
 * before its contents for additions and after them for deletions. Layers in the order
 * given. Not reported: a whiteout over nothing; an upper copy equal to the host's object;
 * a directory whose only difference is its times. An object whose only difference is
 * its mtime is reported with what == CHANGE_TIMES (front ends leave it out).
 *
 * Memory is bounded by the widest directory and the depth, not by the number of changes;
 * trees may be of any depth. Fails with ERR_SYSTEM if the upper or the host tree cannot
 * be read (a directory whose mode keeps us out and that is not ours: e->sys == EACCES; the
 * user's own ones are read whatever their mode); a host object that vanishes while we look
 * counts as absent. Exceptions: a file that cannot be read counts as changed in its content,
 * and no mount on the host is entered in search of deleted objects, since the layer ends
 * there.
 */
int change_walk(const struct change_layer *layers, size_t n, change_fn *fn, void *arg,
		struct err *e);

/*
 * The same with a filter: only paths equal to or below one of @paths (absolute, clean,
 * NULL-ended; NULL: all) are reported, and only directories on the way to them are read.
 */
int change_walk_paths(const struct change_layer *layers, size_t n,
		      const char *const *paths, change_fn *fn, void *arg, struct err *e);

/* Is it more than a new mtime? What front ends list and sum up. */
bool change_counts(const struct change *c);

/* Totals for a summary. Directories count; CHANGE_TIMES alone does not. */
struct change_totals {
	uint64_t added, modified, deleted;
	uint64_t bytes; /* sum of the sizes of the added and modified files */
};
static inline uint64_t change_total(const struct change_totals *t)
{
	return t->added + t->modified + t->deleted;
}
void change_totals_add(struct change_totals *t, const struct change *c);
int change_count(const struct change_layer *layers, size_t n, struct change_totals *t,
		 struct err *e);

/* An owned list of them, for diff and rename detection. */
struct change_item {
	struct change c;     /* c.path and c.rel are owned by the item */
	size_t renamed_from; /* index of the CHANGE_DELETE it came from, or SIZE_MAX */
	bool renamed_away;   /* a CHANGE_DELETE that is the source of a rename */
};
struct change_list {
	struct change_item *v;
	size_t n, cap;
};
/* On failure the list is empty. */
int change_collect(const struct change_layer *layers, size_t n, struct change_list *l,
		   struct err *e);
/*
 * Same plus filter: keeps only paths equal to or below one of @paths (absolute, clean;
 * NULL-ended; NULL: all). Only the directories on the way to them are read.
 */
int change_collect_paths(const struct change_layer *layers, size_t n,
			 const char *const *paths, struct change_list *l, struct err *e);
void change_list_free(struct change_list *l);
void change_list_add(struct change_list *l, const struct change *c); /* a copy */

/* One letter for people: A, M, D, T, R for a rename's new name, X if only the mode differs. */
char change_letter(const struct change_item *it);
/* The same of a change by itself, which is never known to be half of a rename. */
char change_letter_alone(const struct change *c);

/*
 * Pairs deleted and added regular files (and symlinks) with equal content, preferring
 * equal base names; empty files are never paired. Fills in renamed_from/renamed_away.
 * Cost: reads only files whose size occurs on both sides. What cannot be read is left
 * unpaired; ERR_SYSTEM for other failures.
 */
int change_find_renames(const struct change_layer *layers, struct change_list *l,
			struct err *e);

#endif
