/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_DOCTOR_FILESYSTEMS_H
#define STET_DOCTOR_FILESYSTEMS_H

#include "doctor/parts.h"

/* Private to the room. */

int doctor_filesystems(struct doctor_report *r, struct err *e);

#endif
