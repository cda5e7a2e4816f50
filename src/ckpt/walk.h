/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_WALK_H
#define STET_CKPT_WALK_H

#include <sys/types.h>

#include "ckpt/parts.h"

/* Private to the room: what a scan consists of. */

struct hardlink {
	uint64_t ino, obj;
	int64_t ctime;
	uint32_t layer;
};

/* Of the directories that are being read only the deepest stay open. */
enum { OPEN_LEVELS = 256 };

struct scan_level {
	int fd; /* -1: closed for the moment */
	dev_t dev;
	ino_t ino;
	struct scan_level *up;
};

struct walk {
	struct ck_scan *s;
	const struct ck_layer *l;
	uint32_t layer;
	struct ck_state *out;
	size_t cursor; /* into the previous state */
	size_t hinted; /* into the hint */
	struct buf rel;
	struct buf xattrs, link;
	struct hardlink *twins; /* hash table of inodes with several names */
	size_t ntwins, cap;
	struct ck_packer pack;
	bool forced;  /* whatever its times say: look */
	uint64_t dev; /* of the layer's root, if it is a whole tree */
	struct scan_level *deepest;
	struct scan_level *open[OPEN_LEVELS]; /* number n at n modulo their number */
	size_t nlevels;
	struct err *e;
};

/*
 * One name, whose path is w->rel; paths come in their order. 1: it is a directory to be
 * entered; 0: done, or gone meanwhile; -1: failed.
 */
int walk_visit(struct walk *w, int dir, const char *name);
/* All that is in a directory that was visited last. */
int walk_dir(struct walk *w, int parent, const char *dirname, unsigned depth);
/* Before another layer begins, and in the end. */
int walk_end_pack(struct walk *w);
void walk_free(struct walk *w);

/* Watching. Failures show in ck_watch_read(). */
void ck_watch_dir(struct ck_watch *w, int fd, uint32_t layer, const char *rel);
/* It has changed: to be told with the rest. */
void ck_watch_note(struct ck_watch *w, uint32_t layer, const char *rel);

#endif
