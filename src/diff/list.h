/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_LIST_H
#define STET_DIFF_LIST_H

#include "diff/change.h"

/* Is the change more than a new mtime? Front ends list and sum up only such changes. */
bool change_counts(const struct change *c);

void change_totals_add(struct change_totals *t, const struct change *c);
int change_count(const struct change_layer *layers, size_t n, struct change_totals *t,
		 struct err *e);

/* On failure the list is empty. */
int change_collect(const struct change_layer *layers, size_t n, struct change_list *l,
		   struct err *e);

/*
 * change_collect() with a filter: keeps only paths equal to or below one of @paths (absolute,
 * clean; NULL-ended; NULL: all). Only the directories on the way to them are read.
 */
int change_collect_paths(const struct change_layer *layers, size_t n,
			 const char *const *paths, struct change_list *l, struct err *e);
void change_list_free(struct change_list *l);

void change_list_add(struct change_list *l, const struct change *c); /* a copy */

/* One letter for people: A, M, D, T, R for a rename's new name, X if only the mode differs. */
char change_letter(const struct change_item *it);

/*
 * change_letter() for a change that is not in a list: it is never known to be half of a
 * rename.
 */
char change_letter_alone(const struct change *c);

#endif
