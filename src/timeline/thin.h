/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_THIN_H
#define STET_TIMELINE_THIN_H

#include "timeline/parts.h"

/* Private to the room. */

/* Lets old ones go if there are too many. Pointers into c->all do not outlive it. */
void timeline_thin(struct timeline *c);

#endif
