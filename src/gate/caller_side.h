/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_CALLER_SIDE_H
#define STET_GATE_CALLER_SIDE_H

#include "gate/gate.h"

const char *exec_outcome_name(enum exec_outcome o);

/* Answers what has been sent up by now. 0; -errno if nothing more can come. */
int desk_serve(struct desk *d);
void desk_free(struct desk *d);

#endif
