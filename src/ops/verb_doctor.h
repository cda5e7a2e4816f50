/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_OPS_VERB_DOCTOR_H
#define STET_OPS_VERB_DOCTOR_H

#include "ops/doctor.h"
#include "ops/verb.h"

/* The row of the doctor; the examination itself is doctor.h. Its result is the report. */
struct doctor_req {
	struct verb_common common;
};

#endif
