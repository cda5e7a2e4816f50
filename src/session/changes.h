/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_SESSION_CHANGES_H
#define STET_SESSION_CHANGES_H

#include "diff/change.h"

/*
 * Changes to be gone through in order, any number of them. A few ten thousand are kept in
 * memory, with renames found among them. If there are more, they are looked for anew each
 * time, so that memory does not grow with them; then there are no renames.
 */
struct changes {
	struct change_list list; /* empty if there are many */
	bool many;
	uint64_t n; /* without those that differ in their times alone */
	int (*source)(const void *from, change_fn *fn, void *arg, struct err *e);
	const void *from;
};

/*
 * Goes through what @source finds @from where; both are needed as long as *c is. @also (or
 * NULL) is called for each change that counts. On failure there is nothing to free.
 */
int changes_find(struct changes *c,
		 int (*source)(const void *from, change_fn *fn, void *arg, struct err *e),
		 const void *from, change_fn *also, void *arg, struct err *e);
void changes_free(struct changes *c);

/* Finds renames, unless there are too many. */
int changes_renames(struct changes *c, const struct change_layer *layers, struct err *e);

/* Sources of renames are among the items, too. As change_fn, but of items. */
typedef int changes_fn(void *arg, const struct change_item *it, struct err *e);
int changes_each(const struct changes *c, changes_fn *fn, void *arg, struct err *e);

/* The change that an item was renamed from, or NULL. */
const struct change *changes_from(const struct changes *c, const struct change_item *it);

#endif
