/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CHANGE_CHANGE_H
#define STET_CHANGE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

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

/* One overlaid tree. Paths are absolute and clean. */
struct change_layer {
	const char *host;  /* the tree as the host has it: "/home/u" */
	const char *upper; /* the upper directory that lies over it */
	const char *base;  /* a directory to be read instead of @host; NULL: none */
	/*
	 * Ids that the sandbox could not keep (one-uid map): an object whose owner in
	 * the upper is @uid, or whose group is @gid, while the host's has another is not
	 * CHANGE_OWNER. The owner's mode bits of a directory that belongs to somebody else
	 * on the host are not compared either: the sandbox shows what the user may do there.
	 */
	bool lax_owner;
	uid_t uid;
	gid_t gid;
	/*
	 * What was put into the upper before the command ran has an older ctime than this
	 * (nanoseconds): as long as it has, it is nobody's doing, whatever the host did since.
	 * 0: there was nothing.
	 */
	int64_t copied_ns;
	/* Report objects of the upper that do not differ, too (what == 0). */
	bool every;
	/*
	 * Of a file whose content differs nobody wants to know what else does: CHANGE_XATTR is
	 * left out then, and the host's attributes are not read.
	 */
	bool brief;
	/*
	 * A large file whose mtime differs counts as changed in its content without being
	 * read: for whoever must not wait for that and may list one too many.
	 */
	bool rough;
	/* Stores of our own: nothing at or below these paths is a change. NULL-ended or NULL. */
	const char *const *never;
	/*
	 * Its upper is not there: the filesystem that holds it is not mounted any more; or may
	 * not be there at any moment. If it is known that nothing was changed in it, a walk goes
	 * past it.
	 */
	bool away, untouched;
	bool unmounted; /* what the host has there is not what it is a layer of */
	/* Paths inside (absolute) that were hidden from the sandbox; NULL-ended or NULL. */
	const char *const *hidden;
	/* Paths that it saw, but could not change; the same form. */
	const char *const *closed;
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
