/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_APPLY_H
#define STET_PLAN_APPLY_H

#include "base/buf.h"
#include "diff/change.h"
#include "plan/plan.h"

/*
 * Carries out single steps of a change list, or takes them back. Each step first looks which
 * object is at its path, by identity: the step is done already, or not yet, or somebody else
 * has changed the path. So any step can be repeated, in either direction, after a crash at any
 * instant.
 *
 * No step destroys anything: a replaced object takes the place of the staged one in the upper
 * (or its own place in `old`), a deleted object goes to `old`.
 *
 * Calling sequence: apply_open(); before the steps apply_began(), apply_decided(), and
 * apply_since(), apply_since_undo(), apply_moved_until() as far as the operation needs them
 * (they set what later questions are answered by, in any order); apply_check() or
 * apply_note_shared() of each step; then apply_forward() or apply_backward() of each;
 * apply_verify(); apply_sync_dirs() or apply_syncfs(); apply_close().
 */
struct apply;

/* @layers: tree and upper of each. `old` lies beside the upper and is made here. */
int apply_open(const struct change_layer *layers, size_t n, struct apply **out,
	       struct err *e);
void apply_close(struct apply *a); /* NULL is fine */

/*
 * ERR_CONFLICT if the host has another object there than the plan expects: then this step, and
 * this step only, is not done. ERR_SYSTEM otherwise.
 */
int apply_forward(struct apply *a, const struct plan_rec *r, struct err *e);
int apply_backward(struct apply *a, const struct plan_rec *r, struct err *e);

/* Lists the names in a directory of the host that is no mount point. -errno. */
struct fs_names;

/* What the last ERR_CONFLICT was about, without the path. */
const char *apply_why(const struct apply *a);
/*
 * Was the last conflict that the directory of the step is not a directory on the host (any
 * more)?
 */
bool apply_lost_dir(const struct apply *a);

/*
 * Sets the time at which the change list was begun, by the coarse clock: objects in a
 * directory that is taken away must not have a later ctime.
 */
void apply_began(struct apply *a, int64_t ns);

/*
 * Says whose decisions the PLAN_FORCE marks of the list are. @own: they were made for the
 * operation at hand. Otherwise they do not count: a user who let a commit win did not decide
 * about its undo. @takes_back: objects go back to where they came from, and there whatever
 * somebody has done meanwhile stays. Until this is called no mark counts.
 */
void apply_decided(struct apply *a, bool own, bool takes_back);

/*
 * For going backwards: a directory that was committed as a whole conflicts if anything in it
 * has changed at or after @ns (coarse clock), unless @excuse accepts the object. 0: no look is
 * taken.
 */
typedef bool apply_excuse(void *arg, const char *path, const struct ident *id);
void apply_since(struct apply *a, int64_t ns, apply_excuse *excuse, void *arg);
/*
 * For going forwards again: a directory that goes as a whole conflicts if anything in it has
 * changed at or after @ns, the beginning of the undo that has put it back, unless the callback
 * of apply_since() accepts the object. 0: no look is taken.
 */
void apply_since_undo(struct apply *a, int64_t ns);
/*
 * In both directions: a file conflicts if its ctime is newer than the last operation of the
 * transaction that moved the file, unless the callback of apply_since() accepts it.
 */
struct apply_moves {
	int64_t all; /* every path of the list was moved by an operation that ended then */
	int64_t last; /* the end of the last operation of all; 0: no look is taken */
	/* The end of the last operation that moved the object @id at @rel; @rel NULL: under any
	 * name. If @id has mode 0 the callback only reads what later answers need. */
	int64_t (*until)(void *arg, uint32_t layer, const char *rel,
			 const struct ident *id);
	void *arg;
};
void apply_moved(struct apply *a, const struct apply_moves *m);

#endif
