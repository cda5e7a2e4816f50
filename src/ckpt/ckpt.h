/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_CKPT_H
#define STET_CKPT_CKPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "layer/ident.h"

/*
 * States of a transaction's upper layers. A state is a list of everything that the layers
 * held at one moment: names, attributes, and for each file the number of a copy of its
 * content (an object), which never changes again and may be shared by any number of states.
 * On disk a state is what differs from the one before it.
 *
 * The upper is hostile, as everywhere (diff/change.h).
 */

/* Where they are kept: beside each upper (objects), and beside the layers (states). */
#define CKPT_DIR "ck"

/* One name in an upper layer. Shared between states by counting; never changed once shared. */
struct ck_entry {
	unsigned refs;
	uint32_t layer;
	uint32_t flags; /* enum ck_flags */
	struct ident id;
	uint64_t rdev;
	uint64_t obj;	    /* its content, or what tells names of one inode; 0: none */
	const char *rel;    /* "": the layer's own root */
	const char *link;   /* target of a symbolic link, or "" */
	const char *xattrs; /* packed, overlayfs' own included */
	size_t nxattrs;
};

enum ck_flags {
	/* Its ctime could stay what it is through another change: look at the content. */
	CK_SUSPECT = 1 << 0,
	/* It had the mark by which a directory hides all that lies below it on the host. */
	CK_OPAQUE = 1 << 1,
	/* Another filesystem or subvolume begins here; it was not entered. */
	CK_EDGE = 1 << 2,
	/* It was read while somebody could be writing to it: its times may be newer than that. */
	CK_EARLY = 1 << 3,
};

/* Entries by layer, then by path, a directory before what is in it. */
struct ck_state {
	struct ck_entry **v;
	size_t n, cap;
};

/*
 * Where the layers are. Descriptors are the caller's. @up: the upper, or a merged tree to
 * apply changes to; @host: what lies beneath it; @objects: contents of files. One whose @up is -1
 * is passed over: no state may speak of it.
 */
struct ck_layer {
	int up, host, objects;
	const char *path; /* the host's tree by name, for messages and hidden paths */
	const char *const *hidden, *const *never; /* absolute; NULL-ended or NULL */
	bool lax;    /* owners that cannot be given are left */
	bool merged; /* @up is a mounted overlay: its marks are its own business */
	bool shared; /* others write to @up, too: what they have just made is not removed */
	/* Content without an object is read below these directories, or -1: of the state after
	 * and, in ck_pair(), of the one before. Without @objects nothing has one. */
	int live, past;
};
struct ck_layers {
	struct ck_layer *v;
	size_t n;
};

/*
 * Reads the layers. Whatever is in @prev (NULL: nothing) with the same inode and ctime is
 * taken from there unread; content of the rest is copied into new objects, unless @hint has
 * the very same at that path, put there by us. @copy false: nothing is copied; new files
 * have no object then, and cannot be restored from this state. @bytes (or NULL) is increased
 * by what was copied.
 */
struct ck_scan {
	const struct ck_layers *layers;
	const struct ck_state *prev, *hint;
	bool copy;
	/* These are whole trees, and nothing shows through them. Objects only tell whether two
	 * files of a tree and its snapshot are the same: nothing is read and nothing is copied. */
	bool whole;
	/* Of whole trees: is this no part of them, nor what is in it? NULL: all is. */
	bool (*edge)(const char *rel, const struct ident *id);
	/* Directories are watched from before they are read; NULL: they are not. */
	struct ck_watch *watch;
	/* Only what is there, and since when: what is not in @prev has no content. */
	bool glance;
	/* The layers may be written to meanwhile: what is read is CK_EARLY. */
	bool early;
	/* What @prev has read early, and was changed at this time or later, is looked at; 0: not */
	int64_t doubt;
	uint64_t copied, bytes;
};

/* All extended attributes of an object, as ck_entry has them. 0 or -errno. */
struct buf;

/* Paths to be looked at again, in any order, as often as one likes. */
enum ck_again {
	CK_NOTED, /* what it is and holds; of a directory not what is in it */
	CK_ITSELF, /* the same of one that must be known or be there: somebody has named it */
	CK_FORCED, /* a file that may have changed without a trace: whatever its times say */
	CK_BENEATH, /* itself and all below it */
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

/* What is seen at a path in one state. */
enum ck_seen { CK_ABSENT, CK_UPPER, CK_LOWER };
struct ck_side {
	enum ck_seen seen;
	const struct ck_entry *e; /* CK_UPPER */
};

/*
 * Calls @fn for every path that looks different in two states, in order, a directory before
 * what is in it. CK_LOWER is what the host has there, with all beneath it if the other side
 * has no directory.
 */
struct ck_diff {
	uint32_t layer;
	const char *rel;
	struct ck_side a, b;
	bool dir; /* a directory on both sides */
	bool way; /* a directory that is only on the way to a wished path: itself, no more */
};
typedef int ck_diff_fn(void *arg, const struct ck_diff *d, struct err *e);

/* What differs, summed up. */
struct change_totals;

#endif
