/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_DRAFT_PARTS_H
#define STET_COMMIT_DRAFT_PARTS_H

#include "base/buf.h"
#include "commit/commit.h"
#include "commit/draft.h"
#include "commit/hardlinks.h"
#include "diff/change.h"
#include "host/known.h"
#include "plan/apply.h"

/* A commit's change list while it is made. For draft*.c alone. */
struct draft {
	const struct txn *t;
	const struct commit_wish *w;
	struct apply *a;
	const struct change_layer *layers;
	struct plan_writer *plan;
	struct known *known;
	struct commit_result *res;
	/* Of inodes with several names, until all of them are known (draft_links.c): */
	struct hardlinks same; /* names that the command has left as the host has them */
	struct hardlinks several; /* steps at chosen names; kind 0: one of @same */
	struct hardlinks
		dressed; /* of these, the host's inodes that get other attributes */
	struct hardlinks inner;	 /* names in new directories, which are moved whole */
	struct hardlinks given;	 /* by the group they get */
	struct plan_rec *wholes; /* new directories */
	size_t nwholes;
	/* Directories, in the order met; their attributes come last, deepest first. */
	struct draft_dir {
		struct plan_rec rec;
		bool due; /* something in it changes, or it itself does */
	} * dirs;
	size_t ndirs;
	/* The directories above the present path, outermost first: indexes of @dirs. */
	size_t *above;
	size_t nabove, above_cap;
	bool walked;	   /* all differences are known */
	struct buf made;   /* the last directory that a chosen path needed */
	struct buf merged; /* the text that both sides of the change at hand agree to */
	struct buf xb, xa;
	/* Nothing is wanted but the conflicts among those paths that the host is to win. */
	bool looking;
	/*
	 * While looking: directories that the command has replaced by another kind of object
	 * and that --ours does not name.
	 */
	char **retyped;
	size_t nretyped;
	/* These, and all below them, keep what the host has. */
	char **kept; /* NULL-ended */
	size_t nkept;
};

/* Appends a step. */
int draft_add(struct draft *d, struct plan_rec *r, struct err *e);
/* A directory whose attributes may have to be set when all else is done. */
void draft_later(struct draft *d, const char *rel, const struct plan_rec *r, bool due);
/* Adds a directory that is not itself committed: only its mtime changes with its contents. */
int draft_later_times(struct draft *d, uint32_t layer, const char *rel, bool due,
		      struct err *e);

#endif
