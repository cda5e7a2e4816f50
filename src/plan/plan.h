/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_PLAN_PLAN_H
#define STET_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "layer/ident.h"

/*
 * A change list on disk: what an operation is going to do. It is complete before the first
 * step is taken and never edited afterwards. It is written and read as a stream, forwards to
 * commit and backwards to undo, so that a million changes need no more memory than one.
 */
enum plan_kind {
	PLAN_REPLACE = 1, /* exchange the staged object and the host's */
	PLAN_CREATE,	  /* move the staged object to a place where there is nothing */
	PLAN_DELETE,	  /* move the host's object into the store */
	PLAN_META,	  /* set attributes of the host's object in place */
	PLAN_LINK,	  /* another name for an object of the host's */
	/*
	 * A directory that chosen paths need, without its other contents. An object that was
	 * in its place (no directory) makes room and waits in old/s<serial>.
	 */
	PLAN_MKDIR,
	PLAN_DIR,  /* attributes of a directory, set when all else is done */
	PLAN_BASE, /* no step: what the host had when the command ended */
	/*
	 * In an undo that leaves a replaced object to the host: what was there before no
	 * longer belongs to the transaction. It moves from its place in the upper to
	 * old/<serial>, and back.
	 */
	PLAN_LEAVE,
};

enum plan_flag {
	PLAN_PARK = 1 << 0, /* what was replaced leaves the upper: old/<serial> */
	PLAN_FORCE =
		1
		<< 2, /* the user has decided, for the operation that the list was made for */
	PLAN_IS_DIR = 1 << 3,
	PLAN_CROSS =
		1
		<< 5, /* upper and host are on different filesystems: see place.staged */
	/*
	 * META, DIR: extended attributes differ too. MKDIR: the new directory gets @xafter and no
	 * other attributes.
	 */
	PLAN_XATTR = 1 << 4,
	PLAN_STAGED = 1 << 7, /* LINK: in a staged directory, before that is moved */
	PLAN_TIMES = 1 << 6,  /* DIR: on the host only the mtime changes */
	/*
	 * REPLACE: the staged object was merged from both sides and lies apart. The command's
	 * own version stays in the upper; with PLAN_PARK it waits in old/<serial>.
	 */
	PLAN_MERGED = 1 << 8,
	PLAN_UNDONE = 1 << 10, /* among what is known (host/known.h): it was taken back */
	/*
	 * In the list of an undo: the transaction has something newer at the place in the
	 * upper. REPLACE, CREATE: the committed object goes to old/a<serial> instead, and
	 * comes from there again. LINK: the link is in a directory that does. DIR: only
	 * attributes of the upper's directory, which stay as they were: @after, in both
	 * directions.
	 */
	PLAN_ASIDE = 1 << 11,
	/*
	 * REPLACE: the staged object is a file without marks. MKDIR: a directory that is no
	 * copy of one of the host's.
	 */
	PLAN_BARE = 1 << 9,
	/*
	 * REPLACE: another name of the host's object @link takes the place. The step itself
	 * makes that name, in old/s<serial>: never in the upper, where the sandbox could write
	 * to it, and it goes if the step is taken back. The command's own version is kept as
	 * with PLAN_MERGED.
	 */
	PLAN_LINKED = 1 << 12,
	/*
	 * In the list of an undo or redo: the host has another version there than the commit's
	 * list says, with the same content.
	 */
	PLAN_TOUCHED = 1 << 13,
	/*
	 * BASE: the object existed when the command ended, but had changed or appeared since
	 * the beginning: it is not known whether the command saw it so.
	 */
	PLAN_LATE = 1 << 14,
	/* BASE: the host has nothing there, and may have deleted it just before. */
	PLAN_DOUBT = 1 << 15,
	/* UNDO: of a step that a decision of the user's had forced */
	PLAN_DECIDED = 1 << 16,
};

/*
 * If the user let a step go on although the host had another object than expected, the list
 * that was made for that says which: @after (of an undo) or @before (of a redo) is the host's
 * object. REPLACE: mode 0 on one side: there was none. DELETE with @after: the host's object
 * takes the place in old/ of the object that comes back.
 */
struct plan_rec {
	enum plan_kind kind;
	unsigned flags;
	uint32_t layer;
	uint64_t
		serial; /* unique among the plans of a transaction; names its place in old/ */
	struct ident before, after;
	const char *rel; /* path within the layer */
	/* PLAN_LINK, PLAN_LINKED: path within the layer of the existing name; else "" */
	const char *link;
	/* PLAN_XATTR: attributes before and after (layer/meta.h) */
	const char *xbefore, *xafter;
	uint32_t nxbefore, nxafter;
};

/*
 * Does the object that takes the place lie in old/ (beside the tree, if that is on another
 * filesystem) and not in the upper?
 */
static inline bool plan_is_apart(const struct plan_rec *r)
{
	return r->flags & (PLAN_MERGED | PLAN_LINKED) ||
	       (r->kind == PLAN_MKDIR && r->before.mode);
}

/* Copies a record, so that it outlives the plan; @link is not kept. */
void plan_rec_copy(struct plan_rec *to, const struct plan_rec *from);
void plan_rec_free(struct plan_rec *r);

struct plan_writer;

/* Creates the file @name, which must not exist, in @dirfd, which must not be O_PATH and
 * must outlive the writer. */
int plan_create(int dirfd, const char *name, struct plan_writer **out, struct err *e);
/* The serial that the next record will have. */
uint64_t plan_next(const struct plan_writer *w);
/* Appends; sets r->serial. */
int plan_add(struct plan_writer *w, struct plan_rec *r, struct err *e);
/* Appends with a given serial: for a list made out of another. */
int plan_add_as(struct plan_writer *w, struct plan_rec *r, uint64_t serial,
		struct err *e);
/* Hands over to the kernel what was appended. */
int plan_flush(struct plan_writer *w, struct err *e);
/* Writes the end mark and the checksum, makes the file and its name durable, closes it. The
 * number of records is returned in *n. */
int plan_finish(struct plan_writer *w, uint64_t *n, struct err *e);
/* plan_finish() without making the file durable: for lists that may be lost. */
int plan_finish_lazily(struct plan_writer *w, struct err *e);
void plan_abandon(struct plan_writer *w); /* closes and deletes; NULL is fine */

struct plan;

/* Opens a finished plan and verifies it whole: ERR_CORRUPT if it is not what was written. */
int plan_open(int dirfd, const char *name, struct plan **out, struct err *e);
void plan_close(struct plan *p);
uint64_t plan_count(const struct plan *p);

/* Calls @fn for each record, in the order written or the reverse. Strings live until @fn
 * returns. A return other than 0 stops and is returned. */
typedef int plan_fn(void *arg, const struct plan_rec *r, struct err *e);
int plan_each(struct plan *p, bool backwards, plan_fn *fn, void *arg, struct err *e);

#endif
