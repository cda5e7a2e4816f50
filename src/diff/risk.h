/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DIFF_RISK_H
#define STET_DIFF_RISK_H

#include "diff/change.h"

/*
 * Changes that act later and elsewhere, which a person should look at before they reach the
 * host. Judges one change without looking at any file; NULL for an ordinary change, else a few
 * words. @target: where a symbolic link leads, or NULL. @root: the directory that a link
 * should not leave.
 */
const char *risk_of(const struct change *c, const char *target, const char *root);

/* Does following @target from the directory of @path lead out of @root? By name alone. */
bool risk_leaves(const char *path, const char *target, const char *root);

#endif
