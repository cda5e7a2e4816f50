/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_RUNNER_LAYERS_H
#define STET_RUNNER_LAYERS_H

#include "runner/build.h"

/* The overlay through which the workspace is seen: the one that most happens in. Or NULL. */
const struct step *build_main(const struct view *v);

/* layers.c: the lower layers of an overlay step, topmost first, as descriptors. */
int build_lowers(struct build *b, const struct step *s, int lower[3], struct err *e);

#endif
