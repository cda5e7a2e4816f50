/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_CALLER_SIDE_H
#define STET_GATE_CALLER_SIDE_H

#include "gate/gate.h"

const char *exec_outcome_name(enum exec_outcome o);

/* Answers the messages that have come so far. 0; -errno if no more can come. */
int desk_serve(struct desk *d);
void desk_free(struct desk *d);

#endif
