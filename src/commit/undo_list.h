/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_COMMIT_UNDO_LIST_H
#define STET_COMMIT_UNDO_LIST_H

#include "commit/undo_parts.h"

/* Private to the room. */

/* Writes a change list of its own, @name, with the steps of the list @from that are wanted, as the
 * host and the layers are now. */
int undo_list_make(struct operation *o, const struct commit_wish *w, const struct deed *d,
		   const char *from, const char *name, struct err *e);

/* Has the host changed what the directory of a PLAN_DIR holds, since its list was made? 1, 0 or -1:
 * *e is set. Then the list is to be made anew. */
int undo_is_dir_changed(struct operation *o, bool redo, const struct plan_rec *r,
			struct err *e);

/* Does the host lack what a step of a redo is to delete? Then, too: there is nothing to be
 * kept, and nothing that the next undo could bring back. */
int undo_is_gone_already(struct operation *o, const struct plan_rec *r, struct err *e);

/* The host path of a step. */
char *undo_path(const struct operation *o, const struct plan_rec *r);

/* Two plan_fn for an apply: see apply_note_shared(). */
int undo_note_shared(void *apply, const struct plan_rec *r, struct err *e);
int redo_note_shared(void *apply, const struct plan_rec *r, struct err *e);

#endif
