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

/*
 * For making a plan: who lies at a path on the host and in the upper (mode 0: nothing),
 * whether the staged one is a copy of the host's that was changed in place, and the
 * extended attributes of either.
 */
int apply_look(struct apply *a, uint32_t layer, const char *rel, struct ident *host,
	       struct ident *up, struct err *e);
/* For one who looks again later: the directory he looked at last may be another by then. */
void apply_look_afresh(struct apply *a);
bool apply_is_copy(struct apply *a, uint32_t layer, const char *rel);
/* The host's directory that a layer lies over. */
const char *apply_host(const struct apply *a, uint32_t layer);
/* Is the directory @rel of the host the one that the command worked in? As meta_came_from(). */
int apply_came_from(struct apply *a, uint32_t layer, const char *rel);
/* Does the upper's directory say that the host had one when the command came there? */
bool apply_saw_one(struct apply *a, uint32_t layer, const char *rel);
/* Has the upper's object this owner and group, as far as the sandbox could keep them? */
bool apply_same_owner(const struct apply *a, uint32_t layer, const struct stat *up,
		      const struct ident *host);
/* The names in a directory of the host's, which is no mount point. -errno. */
struct fs_names;
int apply_list(struct apply *a, uint32_t layer, const char *rel, struct fs_names *out);
int apply_pack(struct apply *a, uint32_t layer, const char *rel, bool host,
	       struct buf *out, struct err *e);

/* Digest of the content and attributes of what the host has there, of a directory of its attributes
 * alone; false if it cannot be read. With @text, also the content of a file if that is text of
 * at most @max bytes (else *text is empty). */
bool apply_digest(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest,
		  struct buf *text, size_t max);

/* The same of what the upper has there, which is no directory. */
bool apply_digest_up(struct apply *a, uint32_t layer, const char *rel, uint64_t *digest);

/* For merging: the text of a file, host's or staged; false if it is not a text of moderate
 * size. */
bool apply_text(struct apply *a, uint32_t layer, const char *rel, bool host,
		struct buf *out);

/*
 * Stages a file with this content and the attributes of the command's own, which is not
 * touched. Sets PLAN_MERGED, r->after and r->serial.
 */
int apply_merge(struct apply *a, struct plan_rec *r, uint64_t serial,
		const struct buf *text, struct err *e);

/*
 * Would the step meet a conflict, as things are? Changes nothing. A step that is done
 * already meets none. What happens between this and the step is the step's to find out.
 */
int apply_check(struct apply *a, const struct plan_rec *r, bool forward, struct err *e);

/*
 * For undoing a part, whose places in the upper are empty since: has the transaction something
 * newer where the step would put what was committed? A name, a deletion, another directory around
 * it or none; of a PLAN_DIR, other attributes. 1 or 0; -1: *e is set.
 */
int apply_is_taken(struct apply *a, const struct plan_rec *r, struct err *e);

/*
 * A step that is to be taken back while the host has gone on from there already: his
 * version stays, and what the step had taken away is kept apart in `old`, so that it is
 * not taken for the transaction's own.
 */
int apply_leave(struct apply *a, const struct plan_rec *r, struct err *e);

/* Is what a done step took away still where an undo would look for it? */
bool apply_is_kept(struct apply *a, const struct plan_rec *r, struct err *e);

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

/*
 * Before apply_check() and apply_backward(), of each step: if the object has several names,
 * moving this one moves the ctime of them all, and that is no change of somebody else's.
 * @forward: what the step takes away, which apply_forward() notes by itself; else what it has
 * put there.
 */
void apply_note_shared(struct apply *a, const struct plan_rec *r, bool forward);

/* After all steps: did somebody who had it open write to what was taken away? Only ever
 * ERR_CONFLICT. */
int apply_verify(struct apply *a, const struct plan_rec *r, struct err *e);

/* Makes the names that steps have changed durable: fsync of the directories met (each
 * once in a row). For small plans; large ones use syncfs. */
int apply_sync_dirs(struct apply *a, const struct plan_rec *r, struct err *e);

/*
 * The group that the staged object would have got outside of the sandbox, as far as the user
 * may: that of what it replaces, or of a setgid directory. Updates r->after; staging gives
 * it to the object.
 */
int apply_regroup(struct apply *a, struct plan_rec *r, struct err *e);

/*
 * Where upper and host are on different filesystems: puts a copy of the staged object on
 * the host's, from where it can be exchanged. Sets PLAN_CROSS, r->after and r->serial.
 */
int apply_relocate(struct apply *a, struct plan_rec *r, uint64_t serial, struct err *e);

/*
 * Gives the staged name an inode of its own. For one of several names: the others stay in
 * the upper, where the sandbox could write to what is the host's then. Updates r->after.
 */
int apply_unshare(struct apply *a, struct plan_rec *r, struct err *e);

/* Before the layers are looked at: puts right what an interrupted apply_unshare() left. */
int apply_tidy(struct apply *a, struct err *e);

/* Gives a changed copy of a host file the holes back that copying has filled. Updates
 * r->after; what cannot be done is left. */
int apply_holes(struct apply *a, struct plan_rec *r, struct err *e);

/* Staging, before anything is promised: overlayfs' marks are taken off the staged object.
 * *objects counts what was touched. */
int apply_stage(struct apply *a, const struct plan_rec *r, uint64_t *objects,
		struct err *e);

/*
 * Has anything of the layers, or of what is staged beside them, been written since
 * apply_open()? Steps do not count. If not, what was on the disk then still is.
 */
bool apply_touched(const struct apply *a);

/* fsync of one staged object (files of it, if it is a directory). */
int apply_sync_staged(struct apply *a, const struct plan_rec *r, struct err *e);

/* syncfs of every filesystem that any step (or question) so far had to do with, and no other: it
 * also waits for what others have written there. */
int apply_syncfs(struct apply *a, struct err *e);

#endif
