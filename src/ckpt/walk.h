/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_CKPT_WALK_H
#define STET_CKPT_WALK_H

#include <sys/types.h>

#include "ckpt/parts.h"

/* Private to the room: the data of a scan. */

struct hardlink {
	uint64_t ino, obj;
	int64_t ctime;
	uint32_t layer;
};

/* Only the deepest of the directories that are being read stay open. */
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

#endif
