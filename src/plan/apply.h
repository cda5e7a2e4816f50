/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_APPLY_H
#define STET_PLAN_APPLY_H

#include "base/buf.h"
#include "diff/change.h"
#include "plan/plan.h"

/*
 * One step of a change list, done or taken back. Each step looks first at what lies where,
 * by identity: done already, not yet done, or somebody else's doing. So any step can be
 * repeated, in either direction, after a crash at any instant.
 *
 * What a step takes away is never destroyed: the replaced object takes the staged one's
 * place in the upper (or its own place in `old`), a deleted one goes to `old`.
 */
struct apply;

/* @layers: the tree and the upper of each; `old` lies beside the upper. Makes `old`. */
int apply_open(const struct change_layer *layers, size_t n, struct apply **out,
	       struct err *e);
void apply_close(struct apply *a); /* NULL is fine */

/*
 * ERR_CONFLICT if the host has something else there than the plan expects: then this
 * step, and this step only, is not done. ERR_SYSTEM otherwise.
 */
int apply_forward(struct apply *a, const struct plan_rec *r, struct err *e);
int apply_backward(struct apply *a, const struct plan_rec *r, struct err *e);

/* The names in a directory of the host's, which is no mount point. -errno. */
struct fs_names;

/* Of the last ERR_CONFLICT: what happened, without the path. */
const char *apply_why(const struct apply *a);
/* Was it that the directory of the step is not (or not now) a directory on the host? */
bool apply_lost_dir(const struct apply *a);

/* When the change list was begun, by the coarse clock: what lies in a directory that
 * is taken away must not bear a later change. */
void apply_began(struct apply *a, int64_t ns);

/*
 * Whose decisions are the PLAN_FORCE marks of the list? @own: of the operation at hand, which
 * made the list; else they were another's, and do not count: who let a commit win did not say
 * so of its undo. @takes_back: it goes back where it came from, and there whatever somebody
 * has done meanwhile stays. Until this is called no mark counts.
 */
void apply_decided(struct apply *a, bool own, bool takes_back);

/* For going backwards: a directory that was committed whole conflicts if anything in it has
 * changed at or after @ns (coarse clock), and nobody excuses it. 0: not looked at. */
typedef bool apply_excuse(void *arg, const char *path, const struct ident *id);
void apply_since(struct apply *a, int64_t ns, apply_excuse *excuse, void *arg);
/* For going forwards again: a directory that goes as a whole conflicts if anything in it has
 * changed at or after @ns, when the undo that has put it back began, and nobody excuses it. 0: not
 * looked at. */
void apply_since_undo(struct apply *a, int64_t ns);
/* In both directions, a file conflicts if its ctime is of then or later, and nobody excuses it: @ns
 * is the end of the last operation that may have moved it there. 0: not looked at. */
void apply_moved_until(struct apply *a, int64_t ns);

#endif
