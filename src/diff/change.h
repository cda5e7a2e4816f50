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
 * Differences between a tree of the host and the upper over it, computed from the upper alone:
 * the cost follows what was changed, never the size of the tree.
 *
 * The upper is hostile: the sandboxed side chose its names, types, link targets and
 * attributes. Everything is opened relative to a descriptor, without following links, and
 * never blocks (FIFOs, devices).
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
	 * The path was hidden from the sandbox. CHANGE_ADD: the command made it anew, whatever
	 * the host has (@before says; totals then count it as modified). CHANGE_DELETE: it
	 * would go with a directory around it; what lies below it on the host is not looked
	 * at.
	 */
	bool was_hidden;
	/*
	 * The path, or a directory above it, was read-only. A process with mounts of its own
	 * has removed what the read-only mount lay on (docs/adr/0026) and made something
	 * there.
	 */
	bool was_closed;
	bool bare; /* CHANGE_MODIFY: a file that has no extended attributes in the upper */
	size_t layer;	  /* index of its layer */
	const char *path; /* absolute host path */
	const char
		*rel; /* the same relative to the layer's host; never empty or absolute */
	struct stat before; /* host; st_mode == 0 if there is none */
	struct stat after;  /* upper; st_mode == 0 if there is none */
};

/*
 * Called for each change; @c and what it points to live until the function returns. Return 0
 * to go on; -1 with *e set, or a positive number, to stop: change_walk() then returns that
 * value.
 */
typedef int change_fn(void *arg, const struct change *c, struct err *e);

/* Totals for a summary. Directories count; a change of times alone (CHANGE_TIMES) does not. */
struct change_totals {
	uint64_t added, modified, deleted;
	uint64_t bytes; /* sum of the sizes of the added and modified files */
};
static inline uint64_t change_total(const struct change_totals *t)
{
	return t->added + t->modified + t->deleted;
}

/* A list of changes that owns its strings, for diff and the detection of renames. */
struct change_item {
	struct change c;     /* c.path and c.rel are owned by the item */
	size_t renamed_from; /* index of the CHANGE_DELETE it came from, or SIZE_MAX */
	bool renamed_away;   /* a CHANGE_DELETE that is the source of a rename */
};
struct change_list {
	struct change_item *v;
	size_t n, cap;
};

#endif
