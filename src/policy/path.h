/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room. */
#ifndef STET_POLICY_PATH_H
#define STET_POLICY_PATH_H

#include "policy/scene.h"
#include "shell/cmd.h"

/*
 * Does the path in @w meet the conditions? @follow: if its last component is a link, the file
 * that the link leads to is meant.
 */
enum tri path_matches(struct scene *s, const struct doc_paths *p, const struct word *w,
		      bool follow);

#endif
