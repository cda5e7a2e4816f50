/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_RENAME_H
#define STET_DIFF_RENAME_H

#include "diff/change.h"

/*
 * Pairs deleted and added regular files (and symlinks) with equal content, preferring
 * equal base names; empty files are never paired. Fills in renamed_from/renamed_away.
 * Cost: reads only files whose size occurs on both sides. What cannot be read is left
 * unpaired; ERR_SYSTEM for other failures.
 */
int change_find_renames(const struct change_layer *layers, struct change_list *l,
			struct err *e);

#endif
