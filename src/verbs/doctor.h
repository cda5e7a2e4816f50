/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_VERBS_DOCTOR_H
#define STET_VERBS_DOCTOR_H

#include "call/verb.h"
#include "doctor/doctor.h"

/* The row of the doctor; the examination itself is doctor.h. Its result is the report. */
struct doctor_req {
	struct verb_common common;
};

#endif
