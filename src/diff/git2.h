/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_GIT2_H
#define STET_DIFF_GIT2_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "diff/merge.h"
#include "diff/patch.h"

/*
 * Questions for libgit2. The library and the 17 others that it needs are not in our own
 * process: the program stet-text is started at the first question, is confined to computing,
 * and ends with us. Private to the room; merge_text() and patch_probe() are for all.
 */

enum { GIT2_ID = 20 };

struct git2_diff {
	uint64_t added, removed;
	unsigned char id[2][GIT2_ID]; /* git's names of the two contents */
};

/*
 * Appends the hunks between two texts to @hunks (NULL: not wanted). A side that is NULL is
 * no file. ERR_UNSUPPORTED if the program cannot be started.
 */
int git2_compare(const struct buf *a, const struct buf *b, struct git2_diff *d,
		 struct buf *hunks, struct err *e);

/* --- what is spoken with the program; both ends are of one build --- */

enum git2_op { GIT2_PROBE = 1, GIT2_COMPARE, GIT2_HUNKS, GIT2_MERGE };

struct git2_request {
	uint64_t op;
	uint64_t len[3]; /* of the texts that follow; GIT2_NONE: there is none */
};
#define GIT2_NONE UINT64_MAX

struct git2_answer {
	int64_t result; /* GIT2_MERGE: 1 or 0; -1: the text says why not */
	struct git2_diff diff;
	uint64_t len; /* of the text that follows */
};

/*
 * Three-way merge of text by libgit2. Returns 1 with the result in @out, 0 if both sides
 * changed the same lines (then @out is empty), -1 with *e if libgit2 cannot be asked.
 */
int merge_text(const struct buf *base, const struct buf *ours, const struct buf *theirs,
	       struct buf *out, struct err *e);

/* Can texts be compared and merged here? 0, or -1 with the reason. */
int patch_probe(struct err *e);

#endif
