/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_STAGE_H
#define STET_PLAN_STAGE_H

#include "plan/apply.h"
#include "plan/parts.h"

/*
 * For making a plan: the identities of the objects at a path on the host and in the upper
 * (mode 0: none).
 */
int apply_look(struct apply *a, uint32_t layer, const char *rel, struct ident *host,
	       struct ident *up, struct err *e);

/*
 * Forgets the directory of the last look: for a caller that looks again later, when it may be
 * another one.
 */
void apply_look_afresh(struct apply *a);
bool apply_is_copy(struct apply *a, uint32_t layer, const char *rel);

/* The tree of the host that a layer lies over. */
const char *apply_host(const struct apply *a, uint32_t layer);

/* Is the directory @rel of the host the one that the command worked in? As meta_came_from(). */
int apply_came_from(struct apply *a, uint32_t layer, const char *rel);

/*
 * Did the host have a directory there when the command came to it, according to the upper's
 * directory?
 */
bool apply_saw_one(struct apply *a, uint32_t layer, const char *rel);

/*
 * Has the upper's object the owner and group of @host, as far as the sandbox could keep them?
 */
bool apply_same_owner(const struct apply *a, uint32_t layer, const struct stat *up,
		      const struct ident *host);

int apply_list(struct apply *a, uint32_t layer, const char *rel, struct fs_names *out);
int apply_pack(struct apply *a, uint32_t layer, const char *rel, bool host,
	       struct buf *out, struct err *e);

/*
 * Stages a file with this content and the attributes of the command's own, which is not
 * touched. Sets PLAN_MERGED, r->after and r->serial.
 */
int apply_merge(struct apply *a, struct plan_rec *r, uint64_t serial,
		const struct buf *text, struct err *e);

/*
 * Makes the names that steps have changed durable: fsync of the directories of the steps, each
 * once in a row. For small plans; large ones use syncfs.
 */
int apply_sync_dirs(struct apply *a, const struct plan_rec *r, struct err *e);

/*
 * Finds the group that the staged object would have got outside of the sandbox, as far as the
 * user may give it: that of the object that it replaces, or of a setgid directory. Updates
 * r->after; staging sets the group.
 */
int apply_regroup(struct apply *a, struct plan_rec *r, struct err *e);

/*
 * If upper and host are on different filesystems: copies the staged object to the host's
 * filesystem, from where it can be exchanged. Sets PLAN_CROSS, r->after and r->serial.
 */
int apply_relocate(struct apply *a, struct plan_rec *r, uint64_t serial, struct err *e);

/*
 * Gives the staged name an inode of its own, if the inode has other names in the upper: the
 * sandbox could write to the host's file through them. Updates r->after.
 */
int apply_unshare(struct apply *a, struct plan_rec *r, struct err *e);

/*
 * Undoes what an interrupted apply_unshare() has left. Call it before the layers are looked
 * at.
 */
int apply_tidy(struct apply *a, struct err *e);

/*
 * Stages an object, before anything is promised: takes the marks of overlayfs off it. *objects
 * is increased by the number of objects touched.
 */
int apply_stage(struct apply *a, const struct plan_rec *r, uint64_t *objects,
		struct err *e);

/*
 * Has staging written anything in the layers or beside them since apply_open()? Steps do not
 * count. If not, what was on the disk still is.
 */
bool apply_touched(const struct apply *a);

/* fsync of one staged object, and of all files in it if it is a directory. */
int apply_sync_staged(struct apply *a, const struct plan_rec *r, struct err *e);

/*
 * syncfs of every filesystem that any step or question so far was about, and of no other:
 * syncfs also waits for what other processes have written there.
 */
int apply_syncfs(struct apply *a, struct err *e);

/* Notes the filesystem of @dir, a directory of a step (negative: none). */
void apply_note_disk(struct apply *a, int dir);

/*
 * Opens the directory beside the host's directory of the last apply_at(); made if @make.
 * -errno.
 */
int apply_beside(struct apply *a, const struct plan_rec *r, bool make);

#endif
