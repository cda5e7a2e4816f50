/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_TIMELINE_THIN_H
#define STET_TIMELINE_THIN_H

#include "timeline/parts.h"

/* Private to the room. */

/* Drops checkpoints if there are too many. Pointers into c->all are invalid afterwards. */
void timeline_thin(struct timeline *c);

#endif
