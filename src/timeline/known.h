/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_KNOWN_H
#define STET_TIMELINE_KNOWN_H

#include "timeline/timeline.h"

/* Is @path, or was it, on the host, in the layers or in any checkpoint? 1, 0 or -1. */
int timeline_knows(struct timeline *c, const char *path, struct err *e);

#endif
