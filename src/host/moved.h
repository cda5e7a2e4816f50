/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_HOST_MOVED_H
#define STET_HOST_MOVED_H

#include "layer/ident.h"
#include "plan/plan.h"
#include "txn/home.h"

/*
 * Until when a transaction itself may have moved the ctime of an object: the end of the last
 * operation (commit, undo or redo, also one that was reversed) that had a step there. A ctime that
 * is not older than that is the work of somebody else. What cannot be read was never moved: then
 * the answers are stricter.
 */
struct moved;

/* Of transaction @txn, which began at @begin. @dir: its directory; both it and @h must outlive
 * the answer. */
struct moved *moved_new(struct home *h, int64_t txn, int64_t begin, int dir);
void moved_free(struct moved *m); /* NULL is fine */

/* The end of the last operation that went through the change list @plan; 0: none did. All paths of
 * the list were moved until then. Only the journal is read. */
int64_t moved_by_list(struct moved *m, const char *plan);

/* Until when was the object @id at @rel moved, by this name or by another name of the same inode?
 * @rel NULL: by any name; 0: it never was. */
int64_t moved_until(struct moved *m, uint32_t layer, const char *rel,
		    const struct ident *id);

/*
 * A path as a number, and moved_until() of it alone: for directories, and callers with many
 * paths.
 */
uint64_t moved_place(uint32_t layer, const char *rel);
int64_t moved_place_until(struct moved *m, uint64_t place);

/* Reads all there is to know, for one who must not use the journal when it asks. */
void moved_read(struct moved *m);

/* Lists of what is known that a transaction got from another (host/inherit.h) say for each path
 * until when the other had moved it. */
void moved_note(struct plan_rec *r, const int64_t *until);
int64_t moved_noted(const struct plan_rec *r);

#endif
