/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_CKPT_H
#define STET_CKPT_CKPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "layer/ident.h"

/*
 * States of the upper layers of a transaction. A state is a list of everything that the layers
 * held at one moment: names, attributes, and for each file the number of a copy of its content
 * (an object). An object never changes and may be shared by any number of states. On disk a
 * state is the difference to the state before it.
 *
 * Calling sequence: ck_scan() reads the layers into a state; ck_save() writes it; ck_load()
 * reads it back; ck_compare() tells what differs between two states; ck_sync() makes layers
 * that are not mounted what a state says, ck_plan() and ck_carry_out() do that through a
 * mounted overlay; ck_sweep() deletes objects that no state has any more.
 *
 * The upper is hostile, as everywhere (diff/change.h).
 */

/* Name of the directory for objects (beside each upper) and for states (beside the layers). */
#define CKPT_DIR "ck"

/*
 * A name in an upper layer. States share entries by counting references; a shared entry never
 * changes.
 */
struct ck_entry {
	unsigned refs;
	uint32_t layer;
	uint32_t flags; /* enum ck_flags */
	struct ident id;
	uint64_t rdev;
	uint64_t obj;	    /* number of its content, or of its inode; 0: none */
	const char *rel;    /* "": the layer's own root */
	const char *link;   /* target of a symbolic link, or "" */
	const char *xattrs; /* packed, overlayfs' own included */
	size_t nxattrs;
};

enum ck_flags {
	/* The file could have changed once more without another ctime: compare the content. */
	CK_SUSPECT = 1 << 0,
	/* The directory was opaque. */
	CK_OPAQUE = 1 << 1,
	/* The scan did not enter this directory: a mount or another subvolume begins here, or
	 * ck_scan.edge named it. All such entries have the same mode, owner, times and xattrs. */
	CK_EDGE = 1 << 2,
	/*
	 * The file was read while a process could be writing to it: its times may be newer
	 * than the copy.
	 */
	CK_EARLY = 1 << 3,
	/* Only together with CK_EDGE: the entry is the root of a mount. */
	CK_MOUNT = 1 << 4,
};

/* Entries by layer, then by path, a directory before what is in it. */
struct ck_state {
	struct ck_entry **v;
	size_t n, cap;
};

/*
 * Where a layer is. The caller owns the descriptors. @up: the upper, or a merged tree to which
 * steps are applied; @host: the tree beneath it; @objects: the contents of files. A layer
 * whose @up is -1 is left out: no state may have an entry of it.
 */
struct ck_layer {
	int up, host, objects;
	const char *path; /* the host's tree by name, for messages and hidden paths */
	const char *const *hidden, *const *never; /* absolute; NULL-ended or NULL */
	bool lax;				  /* an owner that cannot be set stays */
	bool merged; /* @up is a mounted overlay, which keeps its own marks */
	bool shared; /* other processes write to @up, too: their new objects are not removed */
	/*
	 * Directories below which content without an object is read, or -1: for the state
	 * after and, in ck_pair(), for the one before. Without @objects no content has an
	 * object.
	 */
	int live, past;
};
struct ck_layers {
	struct ck_layer *v;
	size_t n;
};

/*
 * Reads the layers. An entry of @prev (NULL: none) with the same inode and ctime is taken over
 * unread. The content of other files is copied into new objects, unless @hint has the same
 * content at that path because we have put it there. With @copy false nothing is copied: new
 * files have no object then, and cannot be restored from this state. @bytes (or NULL) is
 * increased by the bytes copied.
 */
struct ck_scan {
	const struct ck_layers *layers;
	const struct ck_state *prev, *hint;
	bool copy;
	/*
	 * The layers are whole trees, and nothing shows through them. Objects only tell
	 * whether two files of a tree and its snapshot are the same: nothing is read and
	 * nothing is copied.
	 */
	bool whole;
	/*
	 * For whole trees: is this path, with everything below it, no part of them? NULL:
	 * everything is a part.
	 */
	bool (*edge)(const void *arg, const char *rel, const struct ident *id);
	const void *edge_arg;
	/* Directories are watched before they are read; NULL: they are not watched. */
	struct ck_watch *watch;
	/* Only names and identities: entries that are not in @prev have no content. */
	bool glance;
	/* The layers may be written to meanwhile: what is read is CK_EARLY. */
	bool early;
	/*
	 * Entries of @prev that are CK_EARLY and were changed at this time or later are read
	 * again; 0: none.
	 */
	int64_t doubt;
	uint64_t copied, bytes;
};

/* Reads all extended attributes of an object, in the form of ck_entry. 0 or -errno. */
struct buf;

/* Paths to be looked at again, in any order; a path may occur several times. */
enum ck_again {
	CK_NOTED,  /* the object and its content; of a directory not its contents */
	CK_ITSELF, /* as CK_NOTED, for a path that was named and must exist or be known */
	CK_FORCED, /* a file that may have changed without new times */
	CK_BENEATH, /* the path and everything below it */
};
struct ck_path {
	uint32_t layer;
	enum ck_again how;
	char *rel;
};
struct ck_paths {
	struct ck_path *v;
	size_t n, cap;
};

/* The kinds of objects that a state shows at a path. */
enum ck_seen { CK_ABSENT, CK_UPPER, CK_LOWER };
struct ck_side {
	enum ck_seen seen;
	const struct ck_entry *e; /* CK_UPPER */
};

/*
 * Calls @fn for every path that looks different in two states, in order, a directory before
 * its contents. CK_LOWER is the host's object, with everything beneath it if the other side
 * has no directory there.
 */
struct ck_diff {
	uint32_t layer;
	const char *rel;
	struct ck_side a, b;
	bool dir; /* a directory on both sides */
	bool way; /* a directory above a chosen path: only the directory itself */
};
typedef int ck_diff_fn(void *arg, const struct ck_diff *d, struct err *e);

/* Sums of the differences. */
struct change_totals;

#endif
