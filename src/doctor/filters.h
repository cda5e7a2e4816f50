/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_FILTERS_H
#define STET_DOCTOR_FILTERS_H

#include "doctor/parts.h"

/* Private to the room. */

void doctor_filters(struct doctor_report *r);

#endif
