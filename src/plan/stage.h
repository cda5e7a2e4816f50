/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_STAGE_H
#define STET_PLAN_STAGE_H

#include "plan/apply.h"
#include "plan/parts.h"

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

int apply_list(struct apply *a, uint32_t layer, const char *rel, struct fs_names *out);
int apply_pack(struct apply *a, uint32_t layer, const char *rel, bool host,
	       struct buf *out, struct err *e);

/*
 * Stages a file with this content and the attributes of the command's own, which is not
 * touched. Sets PLAN_MERGED, r->after and r->serial.
 */
int apply_merge(struct apply *a, struct plan_rec *r, uint64_t serial,
		const struct buf *text, struct err *e);

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

/* Notes the filesystem of @dir, a directory of a step (or negative: none). */
void apply_note_disk(struct apply *a, int dir);

/* The directory beside the host's directory of the last apply_at(); made if @make. -errno. */
int apply_beside(struct apply *a, const struct plan_rec *r, bool make);

#endif
