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
	/* Those that hold what is looked at now, outermost first: places in @dirs. */
	size_t *above;
	size_t nabove, above_cap;
	bool walked;	   /* all differences are known */
	struct buf made;   /* the last directory that a chosen path needed */
	struct buf merged; /* the text that both sides of the change at hand agree to */
	struct buf xb, xa;
	/* Nothing is wanted but the conflicts among those paths that the host is to win. */
	bool looking;
	/* These, and all below them, keep what the host has. */
	char **kept; /* NULL-ended */
	size_t nkept;
};

/* Has the user said that the transaction wins there? That the host does, which matters? */
bool draft_is_ours(const struct draft *d, const char *path);
bool draft_is_kept(const struct draft *d, const char *path);
/* Nobody can want both. */
int draft_check_sides(const struct draft *d, const char *path, struct err *e);

/* Was it touched on the host alone? What the command has then is the time it found. */
bool draft_only_theirs(struct draft *d, const struct change *c, const struct plan_rec *r);

/* Has somebody else changed it since the transaction saw it? */
bool draft_host_changed(struct draft *d, const struct change *c,
			const struct ident *host);

void draft_conflict(struct draft *d, const struct change *c, const char *what);
/* It was read-only: never committed, whatever is accepted. --theirs leaves what the host has. */
void draft_closed(struct draft *d, const struct change *c);
/* Against what the host has there now. If both sides can stand, d->merged holds both. */
void draft_check_conflict(struct draft *d, const struct change *c,
			  const struct ident *host);
void draft_check_risk(struct draft *d, const struct change *c);

/* Appends a step. */
int draft_add(struct draft *d, struct plan_rec *r, struct err *e);
/* A directory whose attributes may have to be set when all else is done. */
void draft_later(struct draft *d, const char *rel, const struct plan_rec *r, bool due);
/* One that is not itself committed: only its mtime goes with what it holds. */
int draft_later_times(struct draft *d, uint32_t layer, const char *rel, bool due,
		      struct err *e);

/* The steps at names of inodes with several, when the walk is over. */
int draft_links(struct draft *d, struct err *e);

#endif
