/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_DRAFT_JUDGE_H
#define STET_COMMIT_DRAFT_JUDGE_H

#include "commit/draft_parts.h"

/* Private to the room. */

/* Has the user said that the transaction wins there? That the host does, which matters? */
bool draft_is_ours(const struct draft *d, const char *path);
bool draft_is_kept(const struct draft *d, const char *path);
/* From now on the host keeps what it has at @path and below it. */
void draft_keep(struct draft *d, const char *path);

/* Nobody can want both. */
int draft_check_sides(const struct draft *d, const char *path, struct err *e);

/* Was it touched on the host alone? What the command has then is the time it found. */
bool draft_only_theirs(struct draft *d, const struct change *c, const struct plan_rec *r);

/* Has somebody else changed it since the transaction saw it? */
bool draft_host_changed(struct draft *d, const struct change *c,
			const struct ident *host);

void draft_conflict(struct draft *d, const struct change *c, const char *what);
/* Adds a conflict that --ours cannot decide. */
void draft_stuck(struct draft *d, const struct change *c, const char *what);

/*
 * The path was read-only: it is never committed, whatever is accepted. --theirs leaves the
 * host's object.
 */
void draft_closed(struct draft *d, const struct change *c);

/* Against what the host has there now. If both sides can stand, d->merged holds both. */
void draft_check_conflict(struct draft *d, const struct change *c,
			  const struct ident *host);
void draft_check_risk(struct draft *d, const struct change *c);

#endif
